import { NotFound, type Session, type types, type Varve } from '@varve/client'

/** Values by id. Each has a session of its own, whose newest message is the value. */
export class Records<T extends { id: string }> {
  /** labels are what list finds values by. */
  constructor(readonly varve: Varve, readonly kind: string, readonly labels: (value: T) => Record<string, string>) {}

  async get(id: string): Promise<T | undefined> {
    try {
      for await (const { message } of this.#session(id).messages({ order: 'desc', limit: 1 })) return valueOf<T>(message)
    } catch (error) {
      unlessMissing(error)
    }
    return undefined
  }

  async put(value: T): Promise<T> {
    const metadata = { mastra: this.kind, ...this.labels(value) }, session = this.#session(value.id, { metadata })
    const done = await session.append([{ role: 'user', parts: [{ type: 'text', text: this.kind }], value }])
    if (done.first_seq > 1) await session.change({ metadata })
    return value
  }

  async delete(id: string): Promise<void> {
    await this.#session(id).delete().catch(unlessMissing)
  }

  /** Returns the values with some labels. */
  async list(labels: Record<string, string>): Promise<T[]> {
    const ids: string[] = []
    for await (const { id } of this.varve.sessions({ metadata: { mastra: this.kind, ...labels }, limit: 100 })) ids.push(id.slice(this.kind.length + 1))
    const found: T[] = []
    for (const id of ids) {
      const value = await this.get(id)
      if (value) found.push(value)
    }
    return found
  }

  #session(id: string, settings: Omit<types.NewSession, 'id'> = {}): Session {
    return this.varve.session(`${this.kind}:${id}`, { ...settings, format: 'ai-sdk' })
  }
}

const dates = new Set(['createdAt', 'updatedAt'])

function valueOf<T>(message: object): T {
  const { value } = message as { value: Record<string, string> }
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, dates.has(key) ? new Date(of) : of])) as T
}

export function unlessMissing(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
