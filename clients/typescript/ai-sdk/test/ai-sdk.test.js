// The AI SDK with Varve as its memory: VARVE_URL, VARVE_KEY. The model is a fake that refuses what a provider would.
import assert from 'node:assert/strict'
import test from 'node:test'
import { convertToModelMessages, generateText, stepCountIs, streamText, tool, validateUIMessages } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { Varve } from '@varve/client'
import { z } from 'zod'
import { memory } from '../dist/index.js'

let calls = 0
const varve = new Varve({ fetch: (...args) => (calls++, fetch(...args)) })
const window = 20_000
const newSession = name => varve.session(`ai-sdk-${process.pid}-${name}`, { format: 'ai-sdk', window_tokens: window })
const read = tool({
  inputSchema: z.object({ n: z.number() }),
  execute: ({ n }) => [`line ${n} of a file\n`.repeat(150), `the key of file ${n} is secret-${n * 7919}.`, `line ${n} of a file\n`.repeat(150)].join('\n'),
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

/** A model that reads file after file, then reads back the first, and then answers. */
function reader(files, requests) {
  let step = 0
  const answer = async ({ prompt }) => {
    const inputTokens = checked(prompt)
    requests.push(prompt)
    const usage = { inputTokens: { total: inputTokens, noCache: inputTokens }, outputTokens: { total: 20 } }
    const call = (toolName, input) => ({
      content: [{ type: 'tool-call', toolCallId: `call-${process.pid}-${calls}-${step}`, toolName, input: JSON.stringify(input) }],
      finishReason: { unified: 'tool-calls' }, usage, warnings: [],
    })
    if (step++ < files) return call('read', { n: step })
    const text = JSON.stringify(prompt)
    if (step === files + 1 && files > 10) assert.ok(!text.includes('secret-7919.'), 'nothing has left the view')
    if (step === files + 1) return call('grep_results', { pattern: 'the key of file 1 is' })
    const found = text.includes('secret-7919.') ? 'found' : 'lost'
    return { content: [{ type: 'text', text: found }], finishReason: { unified: 'stop' }, usage, warnings: [] }
  }
  return new MockLanguageModelV4({
    doGenerate: answer,
    doStream: async options => {
      const { content: [part], finishReason, usage } = await answer(options)
      const parts = part.type === 'text'
        ? [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: part.text }, { type: 'text-end', id: '1' }] : [part]
      return { stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', finishReason, usage }]) }
    },
  })
}

test('a run of 60 steps never exceeds its window, and finds what left the view', async () => {
  const session = newSession('long'), run = memory(session), requests = []
  const tools = { read, ...await run.tools() }
  calls = 0
  const { text } = await generateText({
    model: reader(60, requests), tools, stopWhen: stepCountIs(70), prompt: 'Read the files.', maxRetries: 0,
    prepareStep: run.prepareStep, onFinish: run.onFinish,
  })
  assert.equal(text, 'found')
  assert.equal(requests.length, 62)
  assert.equal(calls, requests.length + 1 + 1, 'a call a request, the last one, and the tool that reads back')
  assert.ok((await session.read()).checkpoint > 0, 'nothing was compacted')
  const again = await generateText({ model: reader(0, requests), tools, prompt: 'And now?', maxRetries: 0, prepareStep: memory(session).prepareStep, stopWhen: stepCountIs(3) })
  assert.equal(again.text, 'found')
})

test('a page saves its UIMessages, and gets them back as they were', async () => {
  const session = newSession('page'), requests = []
  let messages = []
  for (const turn of [1, 2, 3]) {
    messages = [...messages, { id: `u${turn}`, role: 'user', parts: [{ type: 'text', text: `Turn ${turn}` }] }]
    const run = memory(session)
    const result = streamText({
      model: reader(3, requests), messages: await run.open(messages), tools: { read, ...await run.tools() },
      stopWhen: stepCountIs(10), prepareStep: run.prepareStep,
    })
    const saved = new Promise((resolve, reject) => {
      const response = result.toUIMessageStreamResponse({
        originalMessages: messages, generateMessageId: () => `a${turn}`,
        onFinish: async event => { await run.save(event).catch(reject); resolve(event.messages) },
      })
      response.text().catch(reject)
    })
    messages = await saved
    assert.equal(messages.length, 2 * turn)
    const view = await session.context()
    await validateUIMessages({ messages: view.messages })
    assert.ok((await convertToModelMessages(view.messages)).length >= view.messages.length)
    const log = []
    for await (const one of session.messages()) if (!one.superseded_by && !one.removed_at) log.push(one.message)
    assert.deepEqual(log, JSON.parse(JSON.stringify(messages)))
  }
})
