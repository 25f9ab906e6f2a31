import type { BaseMessage } from '@langchain/core/messages'
import type { RunnableConfig } from '@langchain/core/runnables'
import { DynamicStructuredTool } from '@langchain/core/tools'
import { APIError, type Session, type types, type Varve } from '@varve/client'
import { type ChatMessage, fromView, toChat } from './messages.js'

/** What of a thread's messages its session has. */
interface Head {
  count: number
  digest: string
  seq: number
}

const maxThreads = 10_000

/** The memory of an agent: each thread is a session, and each request to the model gets the session's view. */
export class VarveMemory {
  readonly #heads = new Map<string, Head>()

  /** settings are those of a new session: model, window_tokens, policy, metadata, … */
  constructor(readonly varve: Varve, readonly settings: Omit<types.NewSession, 'id' | 'format'> = {}) {}

  /** Is given as preModelHook: the model is sent the view in place of all messages, so that no request exceeds its window. */
  readonly preModelHook = async (state: { messages: BaseMessage[] }, config?: RunnableConfig): Promise<{ llmInputMessages: BaseMessage[] }> =>
    ({ llmInputMessages: await this.view(threadOf(config), state.messages) })

  /** Appends what is new of a thread's messages and returns what to send to the model: for a middleware of createAgent. */
  async view(thread: string, messages: BaseMessage[]): Promise<BaseMessage[]> {
    const chat = messages.map(toChat)
    const view = await this.#stored(thread, chat)
    this.#heads.delete(thread)
    this.#heads.set(thread, { count: chat.length, digest: await digestOf(chat), seq: view.last_seq })
    if (this.#heads.size > maxThreads) this.#heads.delete(this.#heads.keys().next().value as string)
    return fromView(view.messages, messages)
  }

  /** Makes a session have the messages, and returns its view: in one call if it has the first of them and no others. */
  async #stored(thread: string, chat: ChatMessage[]): Promise<types.View> {
    const session = this.session(thread), head = this.#heads.get(thread)
    const { count, seq } = head && await digestOf(chat.slice(0, head.count)) === head.digest ? head : { count: 0, seq: 0 }
    try {
      if (chat.length > count) return await session.step(chat.slice(count), { expected_seq: seq })
    } catch (error) {
      if (!(error instanceof APIError) || error.code !== 'stale_expected_seq') throw error
    }
    await session.replace(chat, { format: 'openai-chat' })
    return session.context({ fit: 'window' })
  }

  /** Returns the session of a thread. */
  session(thread: string): Session {
    return this.varve.session(thread, { ...this.settings, format: 'openai-chat' })
  }

  /** Returns the tools that read back what left the view. */
  async tools(): Promise<DynamicStructuredTool[]> {
    const defined = await this.varve.tools('anthropic') as { name: string, description: string, input_schema: Record<string, unknown> }[]
    return defined.map(({ name, description, input_schema: schema }) => new DynamicStructuredTool({
      name, description, schema,
      func: async (input, _, config) => (await this.session(threadOf(config)).call(name, input)).text ?? '',
    }))
  }
}

function threadOf(config?: RunnableConfig): string {
  const thread: unknown = config?.configurable?.['thread_id']
  if (!thread) throw new Error('the config has no thread_id in configurable')
  return String(thread)
}

async function digestOf(messages: ChatMessage[]): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(messages)))
  return String.fromCharCode(...new Uint8Array(digest))
}
