// An agent with the TypeScript client: node typescript.mjs "Read README.md." "And now?"
import { readFile } from 'node:fs/promises'
import { Varve } from '@varve/client'

const { OPENAI_BASE_URL = 'https://api.openai.com/v1', OPENAI_API_KEY, SESSION = `typescript-${Date.now()}` } = process.env
const varve = new Varve(), session = varve.session(SESSION, { format: 'openai-chat', model: 'gpt-4o' })
const tools = [{ type: 'function', function: { name: 'read_file', description: 'Reads a file',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } } }, ...await varve.tools('openai-chat')]

async function ask(messages) {
  const headers = { Authorization: `Bearer ${OPENAI_API_KEY}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${OPENAI_BASE_URL}/chat/completions`, { method: 'POST', headers, body: JSON.stringify({ model: 'gpt-4o', messages, tools }) })
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
  return answer.json()
}

async function result({ id, function: { name, arguments: args } }) {
  if (name !== 'read_file') return (await session.call(name, args, { call_id: id })).messages
  return [{ role: 'tool', tool_call_id: id, content: await readFile(JSON.parse(args).path, 'utf8') }]
}

for (const content of process.argv.slice(2)) {
  let view = await session.step([{ role: 'user', content }])
  for (let message; !message || message.tool_calls;) {
    const { choices, usage } = await ask(view.messages)
    message = choices[0].message
    const results = await Promise.all((message.tool_calls ?? []).map(result))
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0
    view = await session.step([message, ...results.flat()], { usage: { input_tokens: usage.prompt_tokens - cached, cache_read_tokens: cached } })
    if (!message.tool_calls) console.log(message.content)
  }
}
