// An agent with the Claude Agent SDK: node claude-agent-sdk.mjs "Read README.md." "And now?"
import { query } from '@anthropic-ai/claude-agent-sdk'
import { VarveSessionStore } from '@varve/claude-agent-sdk'
import { Varve } from '@varve/client'

const model = 'claude-sonnet-4-5', window_tokens = Number(process.env.WINDOW ?? 200_000)
const sessionStore = new VarveSessionStore(new Varve(), { compacted: true, settings: { model, window_tokens } })
let resume

for (const prompt of process.argv.slice(2)) {
  const mcpServers = await sessionStore.mcpServers(resume)
  const options = { sessionStore, resume, mcpServers, model, tools: ['Read'], allowedTools: ['Read', 'mcp__varve'] }
  for await (const message of query({ prompt, options })) {
    if (message.type === 'result') console.log(message.result)
    resume = message.session_id ?? resume
  }
}
