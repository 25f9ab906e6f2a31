import { NotFound, type Session, type types } from '@varve/client'
import { convertToModelMessages, dynamicTool, jsonSchema, type LanguageModelUsage, type ModelMessage, type ToolSet, type UIMessage } from 'ai'

/** What of a step of generateText and streamText is looked at. */
interface Step {
  response: { messages: ModelMessage[] }
  usage: LanguageModelUsage
}

/** The memory of one run of generateText or streamText: a session of the format ai-sdk. */
export interface Memory {
  /**
   * Is given as prepareStep: it appends what is new and sends the session's view in place of all messages, so that no
   * request of a run, however long, exceeds the model's window.
   */
  prepareStep(options: { steps: Step[], initialMessages: ModelMessage[] }): Promise<{ messages: ModelMessage[] }>
  /** Is given as onFinish of generateText or streamText: it appends the last step. */
  onFinish(event: { steps: Step[] }): Promise<void>
  /** Begins a run with the UIMessages of a page: they are the session's, and what is returned is sent to the model. */
  open(messages: UIMessage[]): Promise<ModelMessage[]>
  /** Is given as onFinish of toUIMessageStreamResponse: the page's messages take the place of the run's. */
  save(event: { messages: UIMessage[] }): Promise<void>
  /** Returns the tools that read back what left the view. */
  tools(): Promise<ToolSet>
}

/** Returns the memory of one run. */
export function memory(session: Session): Memory {
  let opened = false
  const modelMessages = ({ messages }: types.View) => convertToModelMessages(messages as unknown as UIMessage[])
  return {
    async prepareStep({ steps, initialMessages }) {
      const last = steps.at(-1)
      if (last) return { messages: await modelMessages(await session.step(last.response.messages, { usage: usageOf(last) })) }
      const view = opened ? session.context({ fit: 'window' }) : session.step(initialMessages)
      return { messages: await modelMessages(await view) }
    },
    async onFinish({ steps }) {
      const last = steps.at(-1)
      if (last?.response.messages.length) await session.append(last.response.messages, { usage: usageOf(last) })
    },
    async open(messages) {
      opened = true
      await session.replace(messages).catch(async error => {
        if (!(error instanceof NotFound)) throw error
        await session.create()
        await session.replace(messages)
      })
      return modelMessages(await session.context({ fit: 'window' }))
    },
    async save({ messages }) {
      await session.replace(messages)
    },
    async tools() {
      const defined = await session.varve.tools('ai-sdk') as { name: string, description: string, inputSchema: object }[]
      return Object.fromEntries(defined.map(({ name, description, inputSchema }) => [name, dynamicTool({
        description, inputSchema: jsonSchema(inputSchema),
        execute: async (input, { abortSignal: signal }) => (await session.call(name, input, signal ? { signal } : {})).text ?? '',
      })]))
    },
  }
}

/** Returns the tokens of a request as Varve counts them: what the cache gave or took is counted apart. */
function usageOf({ usage }: Step): types.Usage | undefined {
  if (!usage.inputTokens) return undefined
  const { cacheReadTokens: read = 0, cacheWriteTokens: written = 0 } = usage.inputTokenDetails
  return {
    input_tokens: usage.inputTokenDetails.noCacheTokens ?? usage.inputTokens - read - written,
    cache_read_tokens: read, cache_creation_tokens: written, output_tokens: usage.outputTokens ?? 0,
  }
}
