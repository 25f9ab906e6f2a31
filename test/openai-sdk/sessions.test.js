// The session classes of the Agents SDK, with twenty turns of a tool each.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemorySession, OpenAIConversationsSession, OpenAIResponsesCompactionSession, run } from '@openai/agents'
import { ask, content, newAgent, problem, varve } from './provider.js'

const turns = 20

/** talk lets the agent run some turns on a session. */
async function talk(session, begin = 1) {
  const { agent, requests } = newAgent()
  for (let n = begin; n < begin + turns; n++) {
    const result = await run(agent, `question ${n}`, { session })
    assert.match(result.finalOutput, /^answer/)
  }
  return requests
}

/** compact has a conversation compacted for a window that it does not fit into any more. */
async function compact(id) {
  await ask('PATCH', `/v1/sessions/${id}`, { window_tokens: 30_000 })
  await ask('POST', `/v1/sessions/${id}/compact?wait=30`)
}

/** bare is an item without what a store may add. */
function bare(item) {
  const { id, status, providerData, ...rest } = item
  return rest
}

test('a conversation is the memory of twenty turns', async () => {
  const session = new OpenAIConversationsSession({ client: varve() })
  const requests = await talk(session)
  const last = requests.at(-1)
  for (let n = 1; n <= turns; n++) {
    assert.ok(last.some((item) => item.role === 'user' && item.content[0]?.text === `question ${n}` || item.content === `question ${n}`), `question ${n}`)
  }
  const outputs = last.filter((item) => item.type === 'function_call_output')
  assert.equal(outputs.length, turns)
  const calls = last.filter((item) => item.type === 'function_call')
  for (const [n, call] of calls.entries()) {
    assert.equal(outputs[n].call_id, call.call_id)
    assert.equal(outputs[n].output, content(JSON.parse(call.arguments).path))
  }
  const reasoning = last.filter((item) => item.type === 'reasoning')
  assert.deepEqual(reasoning.map((item) => item.encrypted_content), calls.map((call) => 'sealed ' + call.call_id.slice('call_'.length)))
  assert.deepEqual(reasoning.map((item) => item.id), calls.map((call) => 'rs_' + call.call_id.slice('call_'.length)))
  assert.equal((await session.getItems()).length, 5 * turns)
  assert.deepEqual(await session.getItems(7), (await session.getItems()).slice(-7))
})

test('popped items come back as they were added', async () => {
  const session = new OpenAIConversationsSession({ client: varve() })
  await talk(session)
  const items = await session.getItems()
  const popped = []
  do popped.unshift(await session.popItem())
  while (popped[0].role !== 'user')
  assert.equal(popped.length, 5)
  assert.deepEqual(popped, items.slice(-5))
  assert.deepEqual(await session.getItems(), items.slice(0, -5))
  await session.addItems(popped)
  assert.deepEqual((await session.getItems()).map(bare), items.map(bare))
})

test('a session that is cleared begins anew', async () => {
  const client = varve()
  const session = new OpenAIConversationsSession({ client })
  await session.addItems([{ role: 'user', content: 'hello' }])
  const id = session.sessionId
  await session.clearSession()
  await assert.rejects(client.conversations.retrieve(id), { status: 404 })
  assert.deepEqual(await session.getItems(), [])
  assert.notEqual(session.sessionId, id)
})

test('a compacted conversation is shorter, valid, and raw where it can be popped', async () => {
  const client = varve({ defaultQuery: { view: 'compacted' } })
  const { id } = await client.conversations.create()
  const session = new OpenAIConversationsSession({ client, conversationId: id })
  await talk(session)
  const raw = new OpenAIConversationsSession({ client: varve(), conversationId: id })
  const before = await raw.getItems()
  await compact(id)
  const after = await session.getItems()
  assert.ok(JSON.stringify(after).length < JSON.stringify(before).length * 0.6, `${JSON.stringify(after).length} of ${JSON.stringify(before).length} bytes`)
  assert.deepEqual(after.slice(-5), before.slice(-5))
  assert.deepEqual(await raw.getItems(), before)
  const popped = []
  for (let n = 0; n < 5; n++) popped.unshift(await session.popItem())
  assert.deepEqual(popped, before.slice(-5))
  const requests = await talk(session, turns + 1)
  assert.equal(problem(requests.at(-1)), undefined)
  const log = await ask('GET', `/v1/sessions/${id}/messages?limit=1000`)
  assert.equal(log.data.filter((message) => message.removed_at).length, 5)
})

test('the metadata of a conversation can ask for its compacted view', async () => {
  const client = varve()
  const { id } = await client.conversations.create({ metadata: { view: 'compacted' } })
  const session = new OpenAIConversationsSession({ client, conversationId: id })
  await talk(session)
  const before = await session.getItems()
  await compact(id)
  assert.ok(JSON.stringify(await session.getItems()).length < JSON.stringify(before).length * 0.6)
})

test('the compaction session goes on after each compaction', async () => {
  const session = new OpenAIResponsesCompactionSession({
    client: varve({ defaultQuery: { window_tokens: 40_000 } }), underlyingSession: new MemorySession(), model: 'gpt-5', compactionMode: 'input',
  })
  const requests = await talk(session)
  const sizes = requests.map((input) => JSON.stringify(input).length)
  assert.ok(sizes.some((size, n) => n > 0 && size < sizes[n - 1]), 'no compaction has made a request smaller')
  const text = JSON.stringify(requests.at(-1))
  for (const n of [1, turns / 2, turns]) assert.ok(text.includes(`question ${n}`), `question ${n} is neither there nor in a summary`)
})

test('a conversation is compacted by its id', async () => {
  const client = varve()
  const { id } = await client.conversations.create()
  await talk(new OpenAIConversationsSession({ client, conversationId: id }))
  await ask('PATCH', `/v1/sessions/${id}`, { window_tokens: 30_000 })
  const compacted = await client.responses.compact({ model: 'gpt-5', previous_response_id: id })
  assert.equal(compacted.object, 'response.compaction')
  assert.equal(problem(compacted.output), undefined)
  const results = await ask('GET', `/v1/sessions/${id}/results`)
  assert.ok(results.data.length > 0, 'nothing that left can be read')
  await assert.rejects(client.responses.compact({ model: 'gpt-5', previous_response_id: 'resp_1' }), { status: 404 })
})

test('a compaction keeps calls and outputs for who asks for items', async () => {
  const client = varve()
  const input = (await talk(new MemorySession())).at(-1)
  const policy = { target: 0.5, trim: { enabled: true }, cap: { max_ratio: 0, unit_ratio: 0 } }
  const items = await client.responses.compact({ model: 'gpt-5', input, policy }, { query: { tools: 'items', window_tokens: 30_000 } })
  assert.equal(problem(items.output), undefined)
  assert.equal(items.output.filter((item) => item.type === 'function_call').length, turns)
  assert.ok(JSON.stringify(items.output).length < JSON.stringify(input).length * 0.6)
  const text = await client.responses.compact({ model: 'gpt-5', input })
  assert.ok(text.output.every((item) => item.type === 'message'))
  assert.equal(text.usage.total_tokens, 0)
})
