import { type FunctionTool, OpenAIConversationsSession, type OpenAIConversationsSessionOptions, tool } from '@openai/agents'
import { NotFound, type ProviderMessage, type Session } from '@varve/client'

type Client = NonNullable<OpenAIConversationsSessionOptions['client']>

/**
 * A session of the OpenAI Agents SDK that never outgrows the model's window: getItems returns the session's view, which
 * is compacted in the background; getItems(limit) and popItem return items as they were added.
 */
export class VarveSession extends OpenAIConversationsSession {
  readonly #session: Session

  /** Takes a session of the format openai-responses; its first items make it. */
  constructor(session: Session) {
    super({ conversationId: session.id, client: clientOf(session) })
    this.#session = session
  }

  /** Returns the tools that read back what left the view. */
  async tools(): Promise<FunctionTool<unknown, never, string>[]> {
    const defined = await this.#session.varve.tools('openai-responses') as { name: string, description: string, parameters: object }[]
    return defined.map(({ name, description, parameters }) => tool({
      name, description, parameters: { ...parameters, additionalProperties: true } as never, strict: false,
      execute: async input => (await this.#session.call(name, input)).text ?? '',
    }) as FunctionTool<unknown, never, string>)
  }
}

/** Returns what the base class uses of OpenAI's client, answered by a session of Varve. */
function clientOf(session: Session): Client {
  const path = `/v1/conversations/${encodeURIComponent(session.id)}`
  const conversations = {
    create: async () => ({ id: session.id }),
    delete: () => session.delete().catch(unlessMissing),
    items: {
      create: (_: string, { items }: { items: ProviderMessage[] }) => session.append(items),
      delete: (item: string) => session.varve.request('DELETE', `${path}/items/${encodeURIComponent(item)}`),
      async* list(_: string, { order, limit }: { order: 'asc' | 'desc', limit?: number }) {
        try {
          if (order === 'asc') yield* (await session.context({ fit: 'window', format: 'openai-responses' })).messages.map(whole)
          else yield* newest(session, path, limit)
        } catch (error) {
          unlessMissing(error)
        }
      },
    },
  }
  return { conversations } as unknown as Client
}

/** Returns an item as OpenAI's API returns it: a message says that it is one, and has its content as an array. */
function whole(item: { type?: string, role?: string, content?: unknown }): object {
  if (item.type && item.type !== 'message') return item
  const type = item.role === 'assistant' ? 'output_text' : 'input_text'
  const content = typeof item.content === 'string' ? [{ type, text: item.content }] : item.content
  return { status: 'completed', ...item, type: 'message', content }
}

/** Yields the items from the newest on. */
async function* newest(session: Session, path: string, limit?: number) {
  for (let after: string | undefined; ;) {
    const query = { order: 'desc', limit, after }
    const page = await session.varve.request<{ data: object[], has_more: boolean, last_id: string }>('GET', `${path}/items`, { query })
    yield* page.data
    if (!page.has_more) return
    after = page.last_id
  }
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
