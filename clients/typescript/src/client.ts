import { APIError } from './errors.js'
import { type Call, linesOf, type Options, type Query, Transport } from './transport.js'
import type {
  Appended, Event, Format, Hit, Message, NewSession, Replaced, Result, Run, Session as SessionState, SessionChange, ToolAnswer,
  UploadedResult, Usage, View,
} from './types.js'

/** A message in a provider's format. */
export type ProviderMessage = object

/** What a view is asked for: max_tokens, fit, wait, format, model, dialect, pending; see docs/api.md. */
export interface ViewQuery {
  max_tokens?: number
  fit?: 'window'
  wait?: number
  format?: Format
  model?: string
  dialect?: string
  pending?: 'keep' | 'synthesize' | 'drop'
}

/** What goes with messages that are appended. */
export interface AppendOptions {
  /** Of the request whose answer is among the messages. */
  usage?: Usage | Usage[] | undefined
  client_ids?: (string | null)[] | undefined
  expected_seq?: number | undefined
  /** The Idempotency-Key; one is made unless it is ''. */
  key?: string | undefined
  signal?: AbortSignal | undefined
}

/** A client of one Varve with one key. Every call waits up to 30 seconds for a server that is not ready. */
export class Varve {
  readonly transport: Transport

  constructor(options: Options = {}) {
    this.transport = new Transport(options)
  }

  /** Calls any route of the API and returns its JSON. */
  request<T = unknown>(method: string, path: string, call?: Call): Promise<T> {
    return this.transport.send<T>(method, path, call)
  }

  /**
   * Returns a session without asking the server. With settings the first append makes it; later ones compare format,
   * model and window.
   */
  session(id: string, settings: Omit<NewSession, 'id'> = {}): Session {
    return new Session(this, id, settings)
  }

  /** Yields the sessions, newest first: all, or those for which conditions hold (metadata, model, format, …). */
  sessions(where: Query = {}): AsyncGenerator<SessionState> {
    return this.list<SessionState>('/v1/sessions', where)
  }

  /** Yields the entries of a list, page after page. */
  async* list<T>(path: string, where: Query = {}, member = 'data'): AsyncGenerator<T> {
    for (let cursor: string | undefined; ;) {
      const page = await this.request<Record<string, T[]> & { next_cursor?: string | null }>('GET', path, { query: { ...where, cursor } })
      for (const one of page[member] ?? []) yield one // yield* takes twice as long
      if (!page.next_cursor) return
      cursor = page.next_cursor
    }
  }

  /** Yields what happens from now on, or behind an event's number n, for ever: a stream that ends is continued. */
  async* events(where: { after?: number, types?: string, session?: string } = {}, signal?: AbortSignal): AsyncGenerator<Event> {
    let after = where.after ?? (await this.request<{ newest: number }>('GET', '/v1/events', { query: { limit: 1 }, signal })).newest
    for (;;) {
      const call = { query: { ...where, after }, headers: { Accept: 'text/event-stream' }, signal }
      const stream = await this.transport.stream('GET', '/v1/events', call)
      let kind = ''
      try {
        for await (const line of linesOf(stream)) {
          if (line.startsWith('event: ')) kind = line.slice(7)
          if (!line.startsWith('data: ') || kind === 'stream.closed') continue
          const event = JSON.parse(line.slice(6)) as Event
          after = event.n
          yield event
        }
      } catch {
        signal?.throwIfAborted() // else the next request says what is wrong
      }
    }
  }

  /** Returns the definitions of the tools that read back, as a provider takes them. */
  async tools(format: Format): Promise<Record<string, unknown>[]> {
    const { tools } = await this.request<{ tools: Record<string, unknown>[] }>('GET', '/v1/tools', { query: { format } })
    return tools
  }
}

/** A session. step is all that most agents need. */
export class Session {
  readonly #path: string

  constructor(readonly varve: Varve, readonly id: string, readonly settings: Omit<NewSession, 'id'> = {}) {
    this.#path = `/v1/sessions/${encodeURIComponent(id)}`
  }

  /**
   * Appends messages and returns what to send to the model next, in one call. The view fits the window. An APIError with
   * appended says why there is no view of messages that are in the log nevertheless.
   */
  async step(messages: ProviderMessage[], options: AppendOptions & ViewQuery = {}): Promise<View> {
    const { usage, client_ids, expected_seq, key, signal, ...view } = options
    const query = { fit: 'window', ...view, return: 'context' }
    const done = await this.#append(messages, { usage, client_ids, expected_seq, key, signal }, query)
    if (done.context) return done.context
    const error = new APIError(done.problem?.status ?? 500, done.problem ?? {})
    error.appended = done
    throw error
  }

  /** Appends messages in the provider's format, all or none. */
  append(messages: ProviderMessage[], options: AppendOptions = {}): Promise<Appended> {
    return this.#append(messages, options, {})
  }

  #append(messages: ProviderMessage[], { key, signal, ...more }: AppendOptions, query: Query): Promise<Appended> {
    const session = Object.keys(this.settings).length ? this.settings : undefined
    return this.#send('POST', '/messages', { body: { messages, ...more, session }, query, key, signal })
  }

  /** Makes the views have these messages and no others: for frameworks that save the whole array. */
  replace(messages: ProviderMessage[], { key, signal, ...more }: AppendOptions & { format?: Format } = {}): Promise<Replaced> {
    return this.#send('PUT', '/messages', { body: { messages, ...more }, key, signal })
  }

  /** Returns what to send to the model. */
  context(view: ViewQuery & Query = {}, signal?: AbortSignal): Promise<View> {
    return this.#send('GET', '/context', { query: view, signal })
  }

  /** Yields the log, as it was appended: from_seq, to_seq, order. */
  async* messages(where: { from_seq?: number, to_seq?: number, order?: 'asc' | 'desc', limit?: number } = {}): AsyncGenerator<Message> {
    const query: Query = { ...where }
    for (;;) {
      const page = await this.#send<{ data: Message[], next_seq: number | null }>('GET', '/messages', { query })
      for (const one of page.data) yield one
      if (page.next_seq === null) return
      query[where.order === 'desc' ? 'to_seq' : 'from_seq'] = page.next_seq
    }
  }

  /** Makes the session with its settings, or reads it if it is there. */
  create(): Promise<SessionState> {
    return this.#send('PUT', '', { body: this.settings })
  }

  /** Reads the session; with include: 'policy' also its policy. */
  read(query: { include?: 'policy' } = {}): Promise<SessionState> {
    return this.#send('GET', '', { query })
  }

  /** Changes settings of the session. */
  change(settings: SessionChange): Promise<SessionState> {
    return this.#send('PATCH', '', { body: settings })
  }

  /** Erases the session and all its data. */
  delete(): Promise<void> {
    return this.#send('DELETE', '')
  }

  /** Compacts the session now, and waits up to 60 seconds for the end. */
  compact(wait?: number, signal?: AbortSignal): Promise<Run> {
    return this.#send('POST', '/compact', { query: { wait }, signal })
  }

  /** Yields the compactions, newest first. */
  runs(): AsyncGenerator<Run> {
    return this.varve.list<Run>(`${this.#path}/runs`)
  }

  /** Yields what left the view and can be read back. */
  results(where: Query = {}): AsyncGenerator<Result> {
    return this.varve.list<Result>(`${this.#path}/results`, where)
  }

  /** Returns the bytes of a result. */
  result(ref: string, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.varve.transport.stream('GET', `${this.#path}/results/${encodeURIComponent(ref)}`, { query: { raw: true }, signal })
  }

  /**
   * Stores the output of a tool while it arrives, and returns the ref and the text to put into its message. progress gets
   * how many bytes are stored.
   */
  async upload(
    pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    { progress, signal, ...about }: {
      tool?: string, call_id?: string, media_type?: string, progress?: (bytes: number) => void, signal?: AbortSignal
    } = {},
  ): Promise<UploadedResult> {
    let path = '/results', query: Query = about, stored = 0
    for await (const [body, last] of inPieces(pieces)) {
      const answer = await this.#send<UploadedResult & { id: string }>('POST', path, { body, query: { ...query, more: !last }, signal })
      stored += body.length
      progress?.(stored)
      if (last) return answer
      path = `/results/uploads/${answer.id}`
      query = { offset: stored }
    }
    throw new Error('the last piece has no end')
  }

  /** Yields the passages of the session with some words, the best first. */
  search(words: string, where: Query = {}): AsyncGenerator<Hit> {
    return this.varve.list<Hit>(`${this.#path}/search`, { ...where, q: words }, 'hits')
  }

  /** Runs a model's call of a tool. With call_id the answer has messages, ready to be appended. */
  call(tool: string, args: unknown, { call_id, format, signal }: { call_id?: string, format?: Format, signal?: AbortSignal } = {}): Promise<ToolAnswer> {
    return this.#send('POST', `/tools/${encodeURIComponent(tool)}`, { body: { arguments: args, call_id, format }, signal })
  }

  /** Returns the tools as functions of their arguments by name, each of which returns a text. */
  async functions(): Promise<Record<string, (args?: object) => Promise<string>>> {
    const tools = await this.varve.tools('anthropic') as { name: string }[]
    return Object.fromEntries(tools.map(({ name }) => [name, async (args: object = {}) => (await this.call(name, args)).text ?? '']))
  }

  /** Makes a session token (st_…) for an agent. */
  async token(wanted: object = {}): Promise<string> {
    return (await this.#send<{ token: string }>('POST', '/tokens', { body: wanted, key: '' })).token
  }

  #send<T>(method: string, path: string, call: Call = {}): Promise<T> {
    return this.varve.request<T>(method, this.#path + path, call)
  }
}

const pieceBytes = 8 << 20

/** Yields bytes in pieces of 8 MiB, and of each whether it is the last one. */
async function* inPieces(pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<[Uint8Array, boolean]> {
  let held = new Uint8Array(0)
  for await (const piece of pieces) {
    const joined = new Uint8Array(held.length + piece.length)
    joined.set(held)
    joined.set(piece, held.length)
    for (held = joined; held.length > pieceBytes; held = held.subarray(pieceBytes)) yield [held.subarray(0, pieceBytes), false]
  }
  yield [held, true]
}
