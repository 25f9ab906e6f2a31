import { APIError, errorOf, Unreachable, VarveError } from './errors.js'

export const version = '0.2.0'

export type Query = Record<string, string | number | boolean | object | undefined>

/** The parts of a request beside its route. */
export interface Call {
  query?: Query | undefined
  /** Bytes as they are, anything else as JSON. */
  body?: unknown
  /** The Idempotency-Key; one is made unless it is ''. */
  key?: string | undefined
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
}

export interface Options {
  /** VARVE_URL without it, and http://localhost:8080 without that. */
  url?: string
  /** VARVE_KEY without it. */
  key?: string
  /** How long one attempt may take: 90 seconds by default. */
  timeoutMs?: number
  /** How long a request is tried again: 30 seconds by default. */
  patienceMs?: number
  fetch?: typeof fetch
}

const env = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {}

/** Sends requests, again after a failure that may pass: those that only read, and those with an Idempotency-Key. */
export class Transport {
  readonly url: string
  readonly #authorization: string
  readonly #options: Options

  constructor(options: Options) {
    this.url = (options.url ?? env['VARVE_URL'] ?? 'http://localhost:8080').replace(/\/+$/, '')
    const key = options.key ?? env['VARVE_KEY']
    if (!key) throw new VarveError('no key was given, and VARVE_KEY is not set')
    this.#authorization = `Bearer ${key}`
    this.#options = options
  }

  /** Returns the JSON of an answer, undefined if it has none. */
  async send<T>(method: string, path: string, call: Call = {}): Promise<T> {
    return this.#repeated(method, call, async key => {
      const text = await (await this.#once(method, path, call, key, true)).text()
      return (text ? JSON.parse(text) : undefined) as T
    })
  }

  /** Returns the bytes of an answer while they arrive. Its beginning is repeated, nothing later. */
  async stream(method: string, path: string, call: Call = {}): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.#repeated(method, call, key => this.#once(method, path, call, key, false))
    return answer.body ?? new Blob([]).stream()
  }

  async #repeated<T>(method: string, call: Call, attempt: (key: string) => Promise<T>): Promise<T> {
    const key = call.key ?? (method === 'GET' ? '' : crypto.randomUUID())
    const end = Date.now() + (this.#options.patienceMs ?? 30_000)
    for (let pause = 100; ; pause = Math.min(2 * pause, 5000)) {
      try {
        return await attempt(key)
      } catch (caught) {
        call.signal?.throwIfAborted()
        const error = caught instanceof APIError ? caught : new Unreachable(`no Varve answers at ${this.url}: ${reason(caught)}`)
        let wait = pause * (0.5 + Math.random())
        if (error instanceof APIError) {
          if (!error.retryable) throw error
          wait = Math.max(wait, error.retryAfterMs ?? 0)
        }
        if ((method !== 'GET' && !key) || Date.now() + wait > end) throw error
        await sleep(wait, call.signal)
      }
    }
  }

  async #once(method: string, path: string, call: Call, key: string, bounded: boolean): Promise<Response> {
    const headers = new Headers({ Authorization: this.#authorization, ...call.headers })
    if (env['PATH']) headers.set('User-Agent', `varve-typescript/${version}`) // a browser has its own
    if (key) headers.set('Idempotency-Key', key)
    const raw = call.body instanceof Uint8Array
    if (call.body !== undefined && !raw) headers.set('Content-Type', 'application/json')
    const body = call.body === undefined ? null : raw ? call.body as Uint8Array<ArrayBuffer> : JSON.stringify(call.body)
    const ends = [call.signal, bounded ? AbortSignal.timeout(this.#options.timeoutMs ?? 90_000) : undefined]
    const answer = await (this.#options.fetch ?? fetch)(this.url + path + encoded(call.query), {
      method, headers, body, signal: AbortSignal.any(ends.filter(s => s !== undefined)),
    })
    if (!answer.ok) throw await errorOf(answer)
    return answer
  }
}

function encoded(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const text = ([name, value]: [string, unknown]) => [name, typeof value === 'object' ? JSON.stringify(value) : String(value)]
  return given.length ? `?${new URLSearchParams(given.map(text))}` : ''
}

function reason(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error }
  return cause?.message || message
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => (clearTimeout(timer), reject(signal?.reason as Error))
    const timer = setTimeout(() => (signal?.removeEventListener('abort', stop), resolve()), ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** Yields the lines of a stream of text. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split(/\r?\n/)
    rest = lines.pop() as string
    yield* lines
  }
  if (rest) yield rest
}
