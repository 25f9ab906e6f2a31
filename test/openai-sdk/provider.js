// A model provider in this process: it answers the requests that the Agents SDK makes of the Responses API, and refuses
// what OpenAI would refuse. A user's message is answered by a call of read_file, and its output by a text.

import OpenAI from 'openai'
import { Agent, OpenAIResponsesModel, setTracingDisabled, tool } from '@openai/agents'
import { z } from 'zod'

setTracingDisabled(true)

/** varve is OpenAI's client with the base URL of Varve, as its users configure it. */
export function varve(options = {}) {
  return new OpenAI({ baseURL: process.env.VARVE_URL + '/v1', apiKey: process.env.VARVE_KEY, maxRetries: 0, ...options })
}

/** ask asks one of Varve's own routes. */
export async function ask(method, path, body) {
  const response = await fetch(process.env.VARVE_URL + path, {
    method,
    headers: { Authorization: 'Bearer ' + process.env.VARVE_KEY, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** content is what read_file reads: large enough that compaction trims it. */
export const content = (path) => `contents of ${path}\n` + 'a line of the file that says nothing new\n'.repeat(150)

/** newAgent is an agent with a tool and a model that is here. requests collects the input of each request. */
export function newAgent() {
  const requests = []
  const client = new OpenAI({ apiKey: 'none', baseURL: 'http://provider.invalid/v1', maxRetries: 0, fetch: answering(requests) })
  const readFile = tool({
    name: 'read_file',
    description: 'Reads a file',
    parameters: z.object({ path: z.string() }),
    execute: async ({ path }) => content(path),
  })
  const agent = new Agent({ name: 'reader', instructions: 'Read what you are asked to.', model: new OpenAIResponsesModel(client, 'gpt-5'), tools: [readFile] })
  return { agent, requests }
}

function answering(requests) {
  return async (url, init) => {
    const input = JSON.parse(init.body).input
    requests.push(input)
    const wrong = problem(input)
    if (wrong) return json(400, { error: { message: wrong, type: 'invalid_request_error', param: 'input', code: null } })
    const n = requests.length
    return json(200, {
      id: `resp_${n}`, object: 'response', created_at: 1, model: 'gpt-5', status: 'completed', output: output(input, n),
      usage: { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 },
    })
  }
}

const json = (status, body) => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } })

function output(input, n) {
  if (input.at(-1).type === 'function_call_output') {
    return [{ type: 'message', id: `msg_${n}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: `answer ${n}`, annotations: [] }] }]
  }
  return [
    { type: 'reasoning', id: `rs_${n}`, summary: [{ type: 'summary_text', text: `thought ${n}` }], encrypted_content: `sealed ${n}` },
    { type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, name: 'read_file', arguments: JSON.stringify({ path: `${n}.txt` }), status: 'completed' },
  ]
}

/** problem is what OpenAI would refuse an input for, undefined for nothing. */
export function problem(input) {
  const calls = new Set()
  const answered = new Set()
  for (const item of input) {
    if (item.type === 'function_call') calls.add(item.call_id)
    if (item.type !== 'function_call_output') continue
    if (!calls.has(item.call_id)) return `No tool call found for function call output with call_id ${item.call_id}.`
    answered.add(item.call_id)
  }
  for (const id of calls) if (!answered.has(id)) return `No tool output found for function call ${id}.`
  const types = new Set(['message', 'function_call', 'function_call_output', 'reasoning', 'compaction'])
  for (const item of input) {
    if (!types.has(item.type ?? 'message')) return `Invalid value: '${item.type}'.`
    if ((item.type ?? 'message') === 'message' && !item.role) return "Missing required parameter: 'role'."
    if (item.type === 'function_call' && !item.call_id) return "Missing required parameter: 'call_id'."
  }
}
