// An agent with the OpenAI Agents SDK: node openai-agents.mjs "Read README.md." "And now?"
import { readFile } from 'node:fs/promises'
import { Agent, run, setTracingDisabled, tool } from '@openai/agents'
import { Varve } from '@varve/client'
import { VarveSession } from '@varve/openai-agents'
import { z } from 'zod'

setTracingDisabled(true)
const session = new VarveSession(new Varve().session(process.env.SESSION ?? `agents-${Date.now()}`, { format: 'openai-responses', model: 'gpt-4o' }))
const read_file = tool({ name: 'read_file', description: 'Reads a file', parameters: z.object({ path: z.string() }), execute: ({ path }) => readFile(path, 'utf8') })
const agent = new Agent({ name: 'reader', model: 'gpt-4o', tools: [read_file, ...await session.tools()] })

for (const question of process.argv.slice(2)) console.log((await run(agent, question, { session })).finalOutput)
