// The Conversations API as the openai package calls it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { APIError, AuthenticationError, BadRequestError, NotFoundError } from 'openai'
import { varve } from './provider.js'

const user = (text) => ({ role: 'user', content: text })

test('a conversation is created, read, changed and deleted', async () => {
  const client = varve()
  const made = await client.conversations.create({ metadata: { topic: 'files' }, items: [user('hello')] })
  assert.match(made.id, /^conv_/)
  assert.equal(made.object, 'conversation')
  assert.ok(Math.abs(made.created_at - Date.now() / 1000) < 600)
  assert.deepEqual(await client.conversations.retrieve(made.id), made)
  const changed = await client.conversations.update(made.id, { metadata: { topic: 'trees' } })
  assert.deepEqual(changed.metadata, { topic: 'trees' })
  assert.deepEqual(await client.conversations.delete(made.id), { id: made.id, object: 'conversation.deleted', deleted: true })
  await assert.rejects(client.conversations.retrieve(made.id), NotFoundError)
})

test('a conversation needs nothing to begin with', async () => {
  const client = varve()
  const { id } = await client.conversations.create()
  const page = await client.conversations.items.list(id)
  assert.deepEqual(page.data, [])
})

test('items come back in both orders, over pages', async () => {
  const client = varve()
  const { id } = await client.conversations.create({ items: [user('0')] })
  const texts = Array.from({ length: 120 }, (_, n) => String(n + 1))
  const added = await client.conversations.items.create(id, { items: texts.map(user) })
  assert.equal(added.data.length, 120)
  assert.equal(added.last_id, added.data.at(-1).id)
  const ascending = []
  for await (const item of client.conversations.items.list(id, { order: 'asc', include: ['reasoning.encrypted_content'] })) ascending.push(item)
  assert.deepEqual(ascending.map((item) => item.content[0].text), ['0', ...texts])
  assert.equal(new Set(ascending.map((item) => item.id)).size, 121)
  const descending = []
  for await (const item of client.conversations.items.list(id, { limit: 50 })) descending.push(item)
  assert.deepEqual(descending.reverse(), ascending)
  const large = await client.conversations.items.list(id, { limit: 1000 })
  assert.equal(large.data.length, 100)
  assert.equal(large.has_more, true)
})

test('an item is read by its id and removed by it', async () => {
  const client = varve()
  const { id } = await client.conversations.create({ items: [user('a'), user('b'), user('c')] })
  const before = (await client.conversations.items.list(id, { order: 'asc' })).data
  assert.deepEqual(await client.conversations.items.retrieve(before[1].id, { conversation_id: id }), before[1])
  const left = await client.conversations.items.delete(before[1].id, { conversation_id: id })
  assert.equal(left.id, id)
  assert.deepEqual((await client.conversations.items.list(id, { order: 'asc' })).data, [before[0], before[2]])
  await assert.rejects(client.conversations.items.retrieve(before[1].id, { conversation_id: id }), NotFoundError)
  await assert.rejects(client.conversations.items.delete(before[1].id, { conversation_id: id }), NotFoundError)
})

test('ids that clients send are not taken for names of items', async () => {
  const client = varve()
  const call = (n) => ({ type: 'function_call', id: 'FAKE_ID', call_id: `call_${n}`, name: 'read_file', arguments: '{}' })
  const { id } = await client.conversations.create({ items: [call(1), call(2)] })
  const { data } = await client.conversations.items.list(id, { order: 'asc' })
  assert.notEqual(data[0].id, data[1].id)
  await client.conversations.items.delete(data[0].id, { conversation_id: id })
  const left = (await client.conversations.items.list(id)).data
  assert.deepEqual(left.map((item) => item.call_id), ['call_2'])
})

test('a request that is repeated with its key has one effect', async () => {
  const client = varve()
  const options = { headers: { 'Idempotency-Key': 'k' } }
  const [first, second] = [await client.conversations.create({}, options), await client.conversations.create({}, options)]
  assert.equal(first.id, second.id)
  for (let i = 0; i < 2; i++) await client.conversations.items.create(first.id, { items: [user('once')] }, { headers: { 'Idempotency-Key': 'l' } })
  assert.equal((await client.conversations.items.list(first.id)).data.length, 1)
})

test('errors are those of OpenAI', async () => {
  const client = varve()
  const { id } = await client.conversations.create()
  const wrong = await client.conversations.items.create(id, { items: [user('fine'), { type: 'message', role: 7 }] }).catch((e) => e)
  assert.ok(wrong instanceof BadRequestError, String(wrong))
  assert.equal(wrong.param, 'items[1].role')
  assert.equal(wrong.type, 'invalid_request_error')
  await assert.rejects(client.conversations.items.list('conv_none'), NotFoundError)
  await assert.rejects(varve({ apiKey: 'none' }).conversations.retrieve(id), AuthenticationError)
  const many = await client.conversations.create({ items: Array.from({ length: 21 }, () => user('x')) }).catch((e) => e)
  assert.ok(many instanceof APIError, String(many))
  assert.equal(many.param, 'items')
})
