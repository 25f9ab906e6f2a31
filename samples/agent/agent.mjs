// An agent whose memory is Varve:  VARVE_KEY=… OPENAI_API_KEY=… node agent.mjs "What does README.md promise?"
import { readFile } from 'node:fs/promises'

const { VARVE_URL = 'http://localhost:8080', VARVE_KEY, OPENAI_BASE_URL = 'https://api.openai.com/v1', OPENAI_API_KEY } = process.env
const client = (base, key) => async (method, path, body) => {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return answer.headers.get('Content-Type').startsWith('application/json') ? answer.json() : answer.text()
}
const varve = client(VARVE_URL, VARVE_KEY)
const openai = client(OPENAI_BASE_URL, OPENAI_API_KEY)
const session = `/v1/sessions/agent-${process.env.SESSION ?? Date.now()}`

const readFileTool = { type: 'function', function: { name: 'read_file', description: 'Reads a file',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } } }
const tools = [readFileTool, ...(await varve('GET', '/v1/tools?format=openai-chat')).tools]
const run = { read_file: ({ path }) => readFile(path, 'utf8') }

// quickstart: begin
const say = (messages, usage) => varve('POST', `${session}/messages?return=context&fit=window`,
  { session: { format: 'openai-chat', model: 'gpt-4o' }, messages, usage })

let { context } = await say([{ role: 'user', content: process.argv[2] }])
for (;;) {
  const answer = await openai('POST', '/chat/completions', { model: 'gpt-4o', messages: context.messages, tools })
  const { message } = answer.choices[0]
  const results = await Promise.all((message.tool_calls ?? []).map(async ({ id, function: { name, arguments: args } }) => (
    run[name] ? [{ role: 'tool', tool_call_id: id, content: String(await run[name](JSON.parse(args))) }]
      : (await varve('POST', `${session}/tools/${name}`, { arguments: args, call_id: id })).messages)))
  const cached = answer.usage.prompt_tokens_details?.cached_tokens ?? 0;
  ({ context } = await say([message, ...results.flat()],
    { input_tokens: answer.usage.prompt_tokens - cached, cache_read_tokens: cached }))
  if (!message.tool_calls) {
    console.log(message.content)
    break
  }
}
// quickstart: end
