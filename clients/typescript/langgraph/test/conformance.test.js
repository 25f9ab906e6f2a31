// LangGraph's validation package against the checkpointer: VARVE_URL, VARVE_KEY.
import assert from 'node:assert/strict'
import test from 'node:test'
import { startVitest } from 'vitest/node'

test('a checkpointer is what LangGraph asks for', async () => {
  const vitest = await startVitest('test', [], { watch: false, globals: true, include: ['conformance.spec.js'], reporters: [{}] })
  const all = [...vitest.state.getTestModules()].flatMap(module => [...module.children.allTests()])
  const failed = all.filter(one => one.result().state !== 'passed')
  assert.deepEqual(failed.map(one => one.fullName), [])
  assert.ok(all.length >= 718, `${all.length} tests ran`)
  console.log(`${all.length} of LangGraph's validation package passed`)
  await vitest.close()
})
