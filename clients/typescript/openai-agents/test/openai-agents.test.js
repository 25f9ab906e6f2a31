// The runner of the OpenAI Agents SDK with a session of Varve: VARVE_URL, VARVE_KEY. The model refuses what OpenAI would.
import assert from 'node:assert/strict'
import test from 'node:test'
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents'
import OpenAI from 'openai'
import { Varve } from '@varve/client'
import { z } from 'zod'
import { VarveSession } from '../dist/index.js'

setTracingDisabled(true)
let calls = 0
const varve = new Varve({ fetch: (...args) => (calls++, fetch(...args)) })
const window = 20_000
const newSession = name => varve.session(`agents-${process.pid}-${name}`, { format: 'openai-responses', window_tokens: window })
const secret = n => `the key of file ${n} is secret-${n * 7919}.`

/** Returns what OpenAI would refuse an input for. */
function problem(input) {
  const open = new Set()
  for (const item of input) {
    if (item.type === 'function_call') open.add(item.call_id)
    if (item.type === 'function_call_output' && !open.delete(item.call_id)) return `an output without its call ${item.call_id}`
  }
  if (open.size) return `calls without an output: ${[...open]}`
  const tokens = JSON.stringify(input).length / 4
  return tokens > window * 1.2 ? `a request of ${tokens} tokens` : undefined
}

/** An agent that reads a file each turn and answers; asked for a secret it looks for what has left its view. */
async function agentFor(session) {
  const requests = []
  const answer = async (_, init) => {
    const { input } = JSON.parse(init.body)
    requests.push(input)
    const json = (status, body) => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } })
    const wrong = problem(input)
    if (wrong) return json(400, { error: { message: wrong, type: 'invalid_request_error' } })
    const n = requests.length, last = input.at(-1), asked = JSON.stringify(last)
    const called = (name, args) => ({ type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, name, arguments: JSON.stringify(args), status: 'completed' })
    const said = text => ({ type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] })
    const looked = input.findLast(item => item.type === 'function_call')?.name === 'grep_results'
    const output = last.type === 'function_call_output' ? said(looked ? /secret-\d+\./.exec(asked)?.[0] : `answer ${n}`)
      : asked.includes('Where') ? called('grep_results', { pattern: 'the key of file 1 is' }) : called('read_file', { n })
    const usage = { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 }
    return json(200, { id: `resp_${n}`, object: 'response', created_at: 1, model: 'gpt-5', status: 'completed', output: [output], usage })
  }
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://provider.invalid/v1', maxRetries: 0, fetch: answer })
  const read = tool({
    name: 'read_file', description: 'Reads a file', parameters: z.object({ n: z.number() }),
    execute: async ({ n }) => [`line ${n} of a file\n`.repeat(250), secret(n), `line ${n} of a file\n`.repeat(250)].join('\n'),
  })
  const tools = [read, ...await session.tools()]
  return { requests, agent: new Agent({ name: 'reader', instructions: 'Read.', model: new OpenAIResponsesModel(client, 'gpt-5'), tools }) }
}

test('thirty turns fit the window, and what left the view is found', async () => {
  const stored = newSession('turns'), session = new VarveSession(stored)
  const { agent, requests } = await agentFor(session)
  for (let n = 1; n <= 30; n++) {
    const { finalOutput } = await run(agent, `question ${n}`, { session })
    assert.match(finalOutput, /^answer/)
  }
  assert.ok((await stored.read()).checkpoint > 0, 'nothing was compacted')
  assert.ok(JSON.stringify(requests.at(-1)).split('line 1 of a file').length < 300, 'nothing has left the view')
  const { finalOutput } = await run(agent, 'Where is the first secret?', { session })
  assert.equal(finalOutput, 'secret-7919.')
})

test('a turn with a tool takes five calls or fewer', async () => {
  const session = new VarveSession(newSession('calls'))
  const { agent } = await agentFor(session)
  for (const turn of [1, 2]) {
    calls = 0
    await run(agent, `question ${turn}`, { session })
    assert.ok(calls <= 5, `${calls} calls`)
  }
})

test('the contract of a session', async () => {
  const session = new VarveSession(newSession('contract'))
  assert.deepEqual(await session.getItems(), [])
  assert.equal(await session.popItem(), undefined)
  const items = ['a', 'b', 'c'].map(text => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }))
  await session.addItems(items)
  const bare = list => list.map(({ id, ...rest }) => rest)
  assert.deepEqual(bare(await session.getItems()), items)
  assert.deepEqual(bare(await session.getItems(2)), items.slice(1))
  assert.deepEqual(bare([await session.popItem()]), items.slice(2))
  assert.deepEqual(bare(await session.getItems()), items.slice(0, 2))
  assert.equal(await session.getSessionId(), `agents-${process.pid}-contract`)
  await session.clearSession()
  const anew = new VarveSession(newSession('contract'))
  assert.deepEqual(await anew.getItems(), [])
  await anew.addItems(items)
  assert.equal((await anew.getItems()).length, 3)
})
