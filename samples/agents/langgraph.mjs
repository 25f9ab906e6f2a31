// An agent with LangGraph: node langgraph.mjs "Read README.md." "And now?"
import { readFile } from 'node:fs/promises'
import { tool } from '@langchain/core/tools'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { Varve } from '@varve/client'
import { VarveMemory, VarveSaver } from '@varve/langgraph'
import { z } from 'zod'

const varve = new Varve(), memory = new VarveMemory(varve, { model: 'gpt-4o' })
const read_file = tool(({ path }) => readFile(path, 'utf8'), { name: 'read_file', description: 'Reads a file', schema: z.object({ path: z.string() }) })
const agent = createReactAgent({
  llm: new ChatOpenAI({ model: 'gpt-4o', configuration: { baseURL: process.env.OPENAI_BASE_URL } }), tools: [read_file, ...await memory.tools()],
  checkpointer: new VarveSaver(varve), preModelHook: memory.preModelHook,
})

const config = { configurable: { thread_id: process.env.SESSION ?? `langgraph-${Date.now()}` }, durability: 'exit' }
for (const content of process.argv.slice(2)) {
  const { messages } = await agent.invoke({ messages: [{ role: 'user', content }] }, config)
  console.log(messages.at(-1).content)
}
