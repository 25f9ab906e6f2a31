// Mastra with Varve as its memory: VARVE_URL, VARVE_KEY. The model is a fake that refuses what a provider would.
import assert from 'node:assert/strict'
import test from 'node:test'
import { Agent } from '@mastra/core/agent'
import { InMemoryDB, InMemoryMemory, MastraCompositeStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { Memory } from '@mastra/memory'
import { Varve } from '@varve/client'
import { z } from 'zod'
import { VarveMemoryStorage, VarveWindow } from '../dist/index.js'

let calls = 0
const varve = new Varve({ fetch: (...args) => (calls++, fetch(...args)) })
const window = 20_000

/** Returns the numbers of a seed. */
function random(seed) {
  return n => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return Math.floor(seed / 2147483648 * n)
  }
}

/** What a random step does to a storage: a method and its argument. */
function stepOf(r, n, name) {
  const of = r(3), thread = () => `${name}-thread-${of}`, resource = () => `${name}-user-${of % 2}`
  const message = () => `${name}-message-${of}-${r(6)}`
  const t = new Date(1_790_000_000_000 + n * 60_000)
  const parts = () => [
    [{ type: 'text', text: `text ${n}` }],
    [{ type: 'step-start' }, { type: 'text', text: 'one' }, { type: 'tool-invocation', toolInvocation: { state: 'result', step: 0, toolCallId: `c${n}`, toolName: 'read', args: { n }, result: { lines: [n, 'Ünïcode', null] } } }],
    [{ type: 'reasoning', reasoning: '', details: [{ type: 'text', text: 'thought', signature: 's' }] }, { type: 'text', text: 'so' }],
  ][r(3)]
  const made = () => {
    const threadId = thread(), role = ['user', 'assistant'][r(2)]
    return { id: message(), threadId, resourceId: resource(), role, type: 'text', createdAt: t, content: { format: 2, parts: parts(), metadata: { n, even: n % 2 === 0 } } }
  }
  const listed = (one = r(4)) => ({
    threadId: one ? thread() : [`${name}-thread-0`, thread()], perPage: [1, 2, 5, false, undefined][r(5)], orderBy: { field: 'createdAt', direction: r(2) ? 'ASC' : 'DESC' },
    ...(r(3) ? {} : { resourceId: resource() }),
    ...(r(3) ? {} : { filter: { metadata: { even: true } } }),
    ...(r(3) ? {} : { filter: { dateRange: { start: new Date(t - 600_000), startExclusive: r(2) === 0 } } }),
    ...(r(3) || !one ? {} : { include: [{ id: message(), withPreviousMessages: r(3), withNextMessages: r(2) }] }),
  })
  return [
    ['saveThread', { thread: threadOf(name, of, n) }],
    ['saveMessages', { messages: [made()] }],
    ['saveMessages', { messages: [made(), { ...made(), id: `${name}-more-${n}`, createdAt: new Date(+t + 1) }] }],
    ['updateThread', { id: thread(), ...(r(2) ? { title: `again ${n}` } : {}), metadata: { more: n } }],
    ['updateMessages', { messages: [{ id: message(), content: { metadata: { updated: n } }, ...(r(3) ? {} : { role: 'assistant' }) }] }],
    ['deleteMessages', [message(), message()]],
    ['listMessages', listed()],
    ['listMessagesByResourceId', { resourceId: resource(), perPage: r(2) ? 3 : false, page: 0 }],
    ['listMessagesById', { messageIds: [message(), message(), message()] }],
    ['listThreads', { filter: r(2) ? { resourceId: resource() } : { resourceId: resource(), metadata: { n } }, perPage: r(2) ? 1 : false, page: 0 }],
    ['getThreadById', { threadId: thread(), ...(r(2) ? {} : { resourceId: resource() }) }],
    ['updateResource', { resourceId: resource(), workingMemory: `memory ${n} ${'m'.repeat(3000)}`, metadata: { n } }],
    ['getResourceById', { resourceId: resource() }],
  ][r(13)]
}

/** The steps without which the answers of two storages have no common times. */
function firstSteps(name) {
  const createdAt = new Date(1_790_000_000_000)
  return [
    ...[0, 1, 2].map(n => ['saveThread', { thread: threadOf(name, n, n) }]),
    ...[0, 1].map(n => ['saveResource', { resource: { id: `${name}-user-${n}`, metadata: { first: n }, createdAt, updatedAt: createdAt } }]),
  ]
}

function threadOf(name, of, n) {
  const createdAt = new Date(1_790_000_000_000 + n)
  return { id: `${name}-thread-${of}`, resourceId: `${name}-user-${of % 2}`, title: `title ${n}`, createdAt, updatedAt: createdAt, metadata: { n, deep: { of: [n] }, workingMemory: 'w'.repeat(2000) } }
}

/** Returns an answer without what no two storages have alike: times of changes, and the order of what has one time. */
function comparable(answer) {
  const text = JSON.parse(JSON.stringify(answer ?? null, (key, value) => key === 'updatedAt' || value === undefined ? null : value))
  for (const list of [text?.messages, text?.threads, Array.isArray(text) ? text : []]) list?.sort((a, b) => a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : a.id < b.id ? -1 : 1)
  return text
}

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`a storage answers as Mastra's own does, seed ${seed}`, async () => {
    const r = random(seed), name = `mastra-${process.pid}-${seed}`
    const own = new InMemoryMemory({ db: new InMemoryDB() })
    let ours = new VarveMemoryStorage(varve)
    for (let n = 0; n < 60; n++) {
      const [method, args] = firstSteps(name)[n] ?? stepOf(r, n, name)
      const answers = []
      for (const storage of [own, ours]) answers.push(await storage[method](structuredClone(args)).catch(error => ({ error: error.message })))
      assert.deepEqual(comparable(answers[1]), comparable(answers[0]), `step ${n}: ${method} ${JSON.stringify(args)}`)
      if (r(10) === 0) ours = new VarveMemoryStorage(varve) // another process
    }
  })
}

test('a thread is cloned, and given to another resource', async () => {
  const name = `mastra-${process.pid}-clone`, storage = new VarveMemoryStorage(varve), createdAt = new Date(1_790_000_000_000)
  await storage.saveThread({ thread: { id: name, resourceId: 'a', title: 'first', createdAt, updatedAt: createdAt } })
  const message = (n, role) => ({ id: `${name}-${n}`, threadId: name, resourceId: 'a', role, type: 'text', createdAt: new Date(+createdAt + n), content: { format: 2, parts: [{ type: 'text', text: `text ${n}` }] } })
  await storage.saveMessages({ messages: [message(1, 'user'), message(2, 'assistant'), message(3, 'user')] })
  const { thread, clonedMessages, messageIdMap } = await storage.cloneThread({ sourceThreadId: name, resourceId: 'b', options: { messageLimit: 2 } })
  assert.equal((await storage.copyThread({ sourceThreadId: name, newThreadId: `${name}-copy` })).thread.id, `${name}-copy`)
  assert.deepEqual([thread.title, thread.resourceId, thread.metadata.clone.lastMessageId], ['Clone of first', 'b', `${name}-3`])
  const { messages } = await storage.listMessages({ threadId: thread.id, perPage: false })
  assert.deepEqual(messages, clonedMessages)
  assert.deepEqual(messages.map(one => one.content.parts[0].text), ['text 2', 'text 3'])
  assert.equal(messageIdMap[`${name}-3`], messages[1].id)
  await storage.updateThreadResourceId({ threadId: name, resourceId: 'c' })
  assert.deepEqual((await storage.listMessages({ threadId: name, perPage: false })).messages.map(one => one.resourceId), ['c', 'c', 'c'])
  assert.equal((await storage.listThreads({ filter: { resourceId: 'c' } })).threads[0].id, name)
})

/** Refuses a prompt that a provider would refuse, and returns about how many tokens it has. */
function checked(prompt) {
  const open = new Set()
  for (const { role, content } of prompt) {
    assert.ok(content.length > 0, 'a message is empty')
    if (role !== 'tool') assert.equal(open.size, 0, `calls without results: ${[...open]}`)
    for (const part of role === 'system' ? [] : content) {
      if (part.type === 'tool-call') open.add(part.toolCallId)
      if (part.type === 'tool-result') assert.ok(open.delete(part.toolCallId), `a result without a call: ${part.toolCallId}`)
    }
  }
  assert.equal(open.size, 0)
  const tokens = JSON.stringify(prompt).length / 4
  assert.ok(tokens < window * 1.2, `a request of ${tokens} tokens`)
  return Math.round(tokens)
}

/** A model that reads file after file and then answers. */
function reader(files, requests) {
  let step = 0
  const answer = ({ prompt }) => {
    const inputTokens = checked(prompt), usage = { inputTokens, outputTokens: 20, totalTokens: inputTokens + 20 }
    requests.push(prompt)
    if (step++ < files) return { part: { type: 'tool-call', toolCallId: `call-${process.pid}-${requests.length}`, toolName: 'read', input: JSON.stringify({ n: step }) }, finishReason: 'tool-calls', usage }
    return { part: { type: 'text', text: 'done' }, finishReason: 'stop', usage }
  }
  return {
    specificationVersion: 'v2', provider: 'fake', modelId: 'fake', supportedUrls: {},
    doGenerate: async options => { const { part, ...more } = answer(options); return { content: [part], warnings: [], ...more } },
    doStream: async options => {
      const { part, ...more } = answer(options)
      const parts = part.type === 'text' ? [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: part.text }, { type: 'text-end', id: '1' }] : [part]
      return { stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...more }]) }
    },
  }
}

test('a run of 60 steps never exceeds its window, and its thread is remembered', async () => {
  const thread = `mastra-${process.pid}-long`, requests = [], storage = new VarveMemoryStorage(varve, { window_tokens: window })
  const read = createTool({
    id: 'read', description: 'reads a file', inputSchema: z.object({ n: z.number() }),
    execute: async ({ n }) => [`line ${n} of a file\n`.repeat(150), `the key of file ${n} is secret-${n * 7919}.`, `line ${n} of a file\n`.repeat(150)].join('\n'),
  })
  const agent = files => new Agent({
    id: 'reader', name: 'reader', instructions: 'Read the files.', model: reader(files, requests), tools: { read }, inputProcessors: [new VarveWindow(storage)],
    memory: new Memory({ storage: new MastraCompositeStore({ id: 'varve', domains: { memory: storage } }), options: { lastMessages: 10 } }),
  })
  const options = { memory: { thread, resource: `mastra-${process.pid}` }, maxSteps: 70 }
  calls = 0
  assert.equal((await agent(60).generate('Read them.', options)).text, 'done')
  assert.equal(requests.length, 61)
  console.log(`${calls} calls for ${requests.length} requests`)
  const session = storage.session(thread)
  assert.ok((await session.read()).checkpoint > 0, 'nothing was compacted')
  const { messages } = await new VarveMemoryStorage(varve).listMessages({ threadId: thread, perPage: false })
  assert.deepEqual(messages.map(one => one.role), ['user', 'assistant'])
  assert.equal(messages[1].content.parts.filter(part => part.type === 'tool-invocation').length, 60)
  assert.equal((await agent(0).generate('And now?', options)).text, 'done')
  assert.ok(JSON.stringify(requests.at(-1)).includes('And now?'), 'the question is not in the request')
  assert.ok(JSON.stringify(requests.at(-1)).includes('Read them.'), 'the first question left')
  const found = await session.functions()
  assert.match(await found.grep_results({ pattern: 'the key of file 1 is' }), /secret-7919\./)
})
