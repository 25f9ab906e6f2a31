// LangGraph with Varve: VARVE_URL, VARVE_KEY. The model is a fake that refuses what a provider would.
import assert from 'node:assert/strict'
import test from 'node:test'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { emptyCheckpoint, MemorySaver, uuid6 } from '@langchain/langgraph-checkpoint'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { Varve } from '@varve/client'
import { createAgent, createMiddleware } from 'langchain'
import { z } from 'zod'
import { VarveChatMessageHistory, VarveMemory, VarveSaver } from '../dist/index.js'

let calls = 0
const varve = new Varve({ fetch: (...args) => (calls++, fetch(...args)) })
const window = 20_000
const newThread = name => ({ configurable: { thread_id: `langgraph-${process.pid}-${name}` }, recursionLimit: 300 })
const read = tool(({ n }) => [`line ${n} of a file\n`.repeat(150), `the key of file ${n} is secret-${n * 7919}.`, `line ${n} of a file\n`.repeat(150)].join('\n'),
  { name: 'read', description: 'Reads a file', schema: z.object({ n: z.number() }) })

/** Refuses what a provider would refuse. */
function check(messages) {
  const open = new Set()
  for (const message of messages) {
    if (message.getType() !== 'tool') assert.equal(open.size, 0, `calls without results: ${[...open]}`)
    for (const { id } of message.tool_calls ?? []) open.add(id)
    if (message.getType() === 'tool') assert.ok(open.delete(message.tool_call_id), `a result without a call: ${message.tool_call_id}`)
  }
  assert.equal(open.size, 0)
  const tokens = messages.reduce((sum, m) => sum + (m.text.length + JSON.stringify(m.tool_calls ?? '').length) / 4, 0)
  assert.ok(tokens < window * 1.1, `a request of ${tokens} tokens`)
}

/** A model that reads so many files, some at once, then reads back the first, and then answers. */
class Reader extends BaseChatModel {
  requests = []
  constructor(files, atOnce = 1) {
    super({})
    Object.assign(this, { files, atOnce, step: 0 })
  }
  _llmType() { return 'reader' }
  bindTools() { return this }
  async _generate(messages) {
    check(messages)
    this.requests.push(messages)
    const message = new AIMessage(this.answer(messages))
    return { generations: [{ text: message.text, message }] }
  }
  answer(messages) {
    const call = (name, args, n = 0) => ({ type: 'tool_call', id: `call-${this.requests.length}-${n}`, name, args })
    const from = this.step
    this.step += this.atOnce
    if (from < this.files) return { content: '', tool_calls: Array.from({ length: this.atOnce }, (_, n) => call('read', { n: from + n + 1 }, n)) }
    const text = messages.map(m => m.text).join('\n')
    if (from < this.files + this.atOnce && this.files > 10) {
      assert.ok(!text.includes('secret-7919.'), 'nothing has left the view')
      return { content: '', tool_calls: [call('grep_results', { pattern: 'the key of file 1 is' })] }
    }
    return { content: text.includes('secret-7919.') ? 'found' : 'lost' }
  }
}

test('a run of 60 steps never exceeds its window, finds what left the view, and goes on in another process', async () => {
  const config = newThread('long'), ask = question => ({ messages: [new HumanMessage(question)] })
  const agentOf = async (llm, memory = new VarveMemory(varve, { window_tokens: window })) => createReactAgent({
    llm, tools: [read, ...await memory.tools()], preModelHook: memory.preModelHook, checkpointer: new VarveSaver(varve),
  })
  const llm = new Reader(60)
  const { messages } = await (await agentOf(llm)).invoke(ask('Read the files.'), config)
  assert.deepEqual([messages.at(-1).text, llm.requests.length, messages.length], ['found', 62, 124])
  assert.ok((await varve.session(config.configurable.thread_id).read()).checkpoint > 0, 'nothing was compacted')
  const next = new Reader(0)
  const again = await (await agentOf(next)).invoke(ask('And now?'), config)
  assert.deepEqual([again.messages.length, again.messages.at(-1).text], [126, 'found'])
  const bare = list => list.map(m => [m.id, m.getType(), m.text, m.tool_calls ?? m.tool_call_id])
  assert.deepEqual(bare(again.messages.slice(0, 124)), bare(messages))
})

test('a turn with three calls of tools takes five calls or fewer', async () => {
  const memory = new VarveMemory(varve, { window_tokens: window })
  const invoke = async (name, checkpointer, options) => {
    const config = { ...newThread(name), ...options }
    const agent = createReactAgent({ llm: new Reader(3, 3), tools: [read], preModelHook: memory.preModelHook, checkpointer })
    calls = 0
    await agent.invoke({ messages: [new HumanMessage('Read three files.')] }, config)
    return calls
  }
  assert.equal(await invoke('calls', new MemorySaver()), 2, 'one for each request to the model')
  assert.ok(await invoke('calls-saved', new VarveSaver(varve), { durability: 'exit' }) <= 5, `${calls} calls`)
})

test('a middleware of createAgent sends the view', async () => {
  const config = newThread('middleware'), memory = new VarveMemory(varve, { window_tokens: window }), model = new Reader(60)
  const wrapModelCall = async (request, handler) => handler({ ...request, messages: await memory.view(config.configurable.thread_id, request.messages) })
  const agent = createAgent({ model, tools: [read, ...await memory.tools()], middleware: [createMiddleware({ name: 'varve', wrapModelCall })] })
  const { messages } = await agent.invoke({ messages: [new HumanMessage('Read the files.')] }, config)
  assert.deepEqual([messages.at(-1).text, model.requests.length], ['found', 62])
})

test('a fork has its own view', async () => {
  const config = newThread('fork'), memory = new VarveMemory(varve), checkpointer = new VarveSaver(varve)
  const llm = new Reader(0), agent = createReactAgent({ llm, tools: [read], preModelHook: memory.preModelHook, checkpointer })
  const ask = (question, at = config) => agent.invoke({ messages: [new HumanMessage(question)] }, at)
  await ask('one')
  const { config: first } = await agent.getState(config)
  await ask('two')
  await ask('three', first)
  assert.deepEqual(llm.requests.at(-1).map(m => m.text), ['one', 'lost', 'three'])
  await ask('four')
  assert.deepEqual(llm.requests.at(-1).map(m => m.text), ['one', 'lost', 'three', 'lost', 'four'])
})

test('what the view has of a message is all of it', async () => {
  const thinking = { type: 'thinking', thinking: 'hm', signature: 's' }, picture = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  const messages = [
    new HumanMessage({ content: [{ type: 'text', text: 'look' }, picture] }),
    new AIMessage({ content: [thinking, { type: 'text', text: 'so' }], tool_calls: [{ type: 'tool_call', id: 'c1', name: 'read', args: { n: 1 } }], id: 'm1' }),
    new ToolMessage({ content: 'x', tool_call_id: 'c1', artifact: { rows: 3 } }),
  ]
  const view = await new VarveMemory(varve).view(newThread('whole').configurable.thread_id, messages)
  assert.deepEqual(view, messages)
})

test('500 checkpoints of a growing thread take three times its messages or less', async () => {
  const config = newThread('growing'), saver = new VarveSaver(varve), messages = []
  let at = config
  for (let n = 1; n <= 500; n++) {
    const message = new HumanMessage({ id: `m${n}`, content: `${n} `.repeat(300) })
    messages.push(message)
    await saver.putWrites({ configurable: { checkpoint_id: uuid6(n), ...at.configurable } }, [['messages', [message]]], `task-${n}`)
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(n), channel_values: { messages: [...messages] }, channel_versions: { messages: n } }
    at = await saver.put(at, checkpoint, { source: 'loop', step: n, parents: {} }, { messages: n })
  }
  let bytes = 0
  for await (const { message } of varve.session(`langgraph:${config.configurable.thread_id}`).messages({ limit: 1000 })) bytes += JSON.stringify(message).length
  const own = messages.reduce((sum, message) => sum + JSON.stringify(message).length, 0)
  console.log(`500 checkpoints: ${(bytes / own).toFixed(2)} times the messages`)
  assert.ok(bytes <= 3 * own, `${bytes} bytes of ${own}`)
  const { checkpoint } = await new VarveSaver(varve).getTuple(config)
  assert.deepEqual(checkpoint.channel_values.messages, messages)
})

test('a history is the view of its session', async () => {
  const session = varve.session(newThread('history').configurable.thread_id, { format: 'openai-chat', window_tokens: window })
  const history = new VarveChatMessageHistory(session)
  assert.deepEqual(await history.getMessages(), [])
  const call = { type: 'tool_call', id: 'c1', name: 'read', args: { n: 1 } }
  const messages = [new HumanMessage('hi'), new AIMessage({ content: '', tool_calls: [call] }), new ToolMessage({ content: 'x', tool_call_id: 'c1' }), new AIMessage('hello')]
  await history.addMessages(messages)
  await history.addUserMessage('bye')
  const bare = list => list.map(m => [m.getType(), m.text, m.tool_calls ?? m.tool_call_id])
  assert.deepEqual(bare(await history.getMessages()), bare([...messages, new HumanMessage('bye')]))
  await history.clear()
  assert.deepEqual(await history.getMessages(), [])
})
