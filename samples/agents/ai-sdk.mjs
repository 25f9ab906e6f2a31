// An agent with the AI SDK: node ai-sdk.mjs "Read README.md." "And now?"
import { readFile } from 'node:fs/promises'
import { openai } from '@ai-sdk/openai'
import { memory } from '@varve/ai-sdk'
import { Varve } from '@varve/client'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'

const session = new Varve().session(process.env.SESSION ?? `ai-sdk-${Date.now()}`, { format: 'ai-sdk', model: 'gpt-4o' })
const read_file = tool({ description: 'Reads a file', inputSchema: z.object({ path: z.string() }), execute: ({ path }) => readFile(path, 'utf8') })
const tools = { read_file, ...await memory(session).tools() }

for (const prompt of process.argv.slice(2)) {
  const run = memory(session)
  const { text } = await generateText({
    model: openai.chat('gpt-4o'), tools, prompt, stopWhen: stepCountIs(20), prepareStep: run.prepareStep, onFinish: run.onFinish,
  })
  console.log(text)
}
