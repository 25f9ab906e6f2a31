// An agent whose memory is Varve:  VARVE_KEY=… OPENAI_API_KEY=… node agent.mjs "What does README.md promise?"
import { readFile } from 'node:fs/promises'

const { VARVE_URL = 'http://localhost:8080', VARVE_KEY, OPENAI_URL = 'https://api.openai.com', OPENAI_API_KEY } = process.env
const client = (base, key) => async (method, path, body) => {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return answer.headers.get('Content-Type').startsWith('application/json') ? answer.json() : answer.text()
}
const varve = client(VARVE_URL, VARVE_KEY)
const openai = client(OPENAI_URL, OPENAI_API_KEY)
const session = `/v1/sessions/agent-${process.env.SESSION ?? Date.now()}`

const tool = (name, description, parameter) => ({ type: 'function', function: { name, description,
  parameters: { type: 'object', properties: { [parameter]: { type: 'string' } }, required: [parameter] } } })
const tools = [tool('read_file', 'Reads a file', 'path'), tool('read_result', 'Returns a trimmed tool result', 'ref')]
const run = { read_file: ({ path }) => readFile(path, 'utf8'), read_result: ({ ref }) => varve('GET', `${session}/results/${ref}?raw=true`) }

// quickstart: begin
await varve('PUT', session, { format: 'openai-chat', model: 'gpt-4o' })
await varve('POST', `${session}/messages`, { messages: [{ role: 'user', content: process.argv[2] }] })
for (;;) {
  const { messages } = await varve('GET', `${session}/context?fit=window`)
  const answer = await openai('POST', '/v1/chat/completions', { model: 'gpt-4o', messages, tools })
  const { message } = answer.choices[0]
  const cached = answer.usage.prompt_tokens_details?.cached_tokens ?? 0
  await varve('POST', `${session}/messages`, { messages: [message],
    usage: { input_tokens: answer.usage.prompt_tokens - cached, cache_read_tokens: cached } })
  if (!message.tool_calls) {
    console.log(message.content)
    break
  }
  const results = await Promise.all(message.tool_calls.map(async ({ id, function: { name, arguments: args } }) => (
    { role: 'tool', tool_call_id: id, content: String(await run[name](JSON.parse(args))) })))
  await varve('POST', `${session}/messages`, { messages: results })
}
// quickstart: end
