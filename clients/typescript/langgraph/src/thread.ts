import { type ChannelVersions, compareWritesSortKeys, writesSortKey } from '@langchain/langgraph-checkpoint'
import { NotFound, type Session } from '@varve/client'

/** A value as the serializer wrote it. */
export type Text = [type: string, text: string]

type Version = ChannelVersions[string]

/** What a checkpoint says of a channel: its value, or how many elements of the array before it stay and what follows them. */
export type Change = { version: Version, keep: number, add: string[] } | { version: Version, value: Text }

/** An entry of a thread's log. */
export type Entry = { ns: string, id: string } & ({
  parent?: string | undefined
  checkpoint: Text
  metadata: Text
  channels: Record<string, Change | null> // null: it has no value any more
} | { task: string, path: string, writes: [index: number, channel: string, ...value: Text][] })

/** An array of elements as texts, or another value. */
export type Value = { version: Version, value: Text } | { version: Version, keep: number, add: string[], base: Value | undefined }

export interface Saved {
  ns: string
  id: string
  parent: string | undefined
  checkpoint: Text
  metadata: Text
  values: Map<string, Value>
}

/** Returns the elements of an array, undefined for another value. */
export function elementsOf(value: Value | undefined): string[] | undefined {
  if (!value || 'value' in value) return undefined
  const pieces: string[][] = []
  for (let at: Value | undefined = value, end = Infinity; at && 'add' in at && end > 0; at = at.base) {
    pieces.push(at.add.slice(0, Math.max(0, end - at.keep)))
    end = Math.min(end, at.keep)
  }
  return pieces.reverse().flat()
}

/** The checkpoints and writes of a thread: what its log says. Entries may be applied again. */
export class Thread {
  readonly #saved = new Map<string, Map<string, Saved>>()
  readonly #writes = new Map<string, Map<string, [path: string, task: string, index: number, channel: string, ...value: Text]>>()
  #seq = 0

  constructor(readonly session: Session) {}

  /** Reads what others have appended. */
  async refresh(): Promise<this> {
    try {
      for await (const { seq, message } of this.session.messages({ from_seq: this.#seq + 1, limit: 1000 })) {
        this.#apply((message as { langgraph: Entry }).langgraph)
        this.#seq = seq
      }
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
      this.#saved.clear()
      this.#writes.clear()
      this.#seq = 0
    }
    return this
  }

  /** Appends an entry. */
  async append(entry: Entry): Promise<void> {
    this.#apply(entry)
    await this.session.append([{ role: 'user', content: 'checkpoint' in entry ? 'checkpoint' : 'writes', langgraph: entry }])
  }

  #apply(entry: Entry): void {
    if ('writes' in entry) return this.#applyWrites(entry)
    const { ns, id, parent, checkpoint, metadata, channels } = entry
    const of = this.#saved.get(ns) ?? new Map<string, Saved>(), before = of.get(parent ?? '')?.values
    const values = new Map(before)
    for (const [channel, change] of Object.entries(channels)) {
      if (!change) values.delete(channel)
      else values.set(channel, 'add' in change ? { ...change, base: before?.get(channel) } : change)
    }
    this.#saved.set(ns, of.set(id, { ns, id, parent, checkpoint, metadata, values }))
  }

  #applyWrites({ ns, id, task, path, writes }: Extract<Entry, { task: string }>): void {
    const key = JSON.stringify([ns, id]), of = this.#writes.get(key) ?? new Map()
    for (const [index, channel, ...value] of writes) {
      const place = `${index} ${task}`
      if (index < 0 || !of.has(place)) of.set(place, [path, task, index, channel, ...value])
    }
    this.#writes.set(key, of)
  }

  /** Returns a checkpoint, without an id the newest. */
  find(ns: string, id: string): Saved | undefined {
    return id ? this.#saved.get(ns)?.get(id) : this.newest(ns)[0]
  }

  /** Returns the checkpoints, newest first. */
  newest(ns?: string): Saved[] {
    const of = ns === undefined ? [...this.#saved.values()] : [this.#saved.get(ns) ?? new Map<string, Saved>()]
    return of.flatMap(saved => [...saved.values()]).sort((a, b) => a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
  }

  /** Returns the writes that belong to a checkpoint, in the order in which LangGraph applies them. */
  writes(ns: string, id: string): { task: string, channel: string, value: Text }[] {
    const found = [...this.#writes.get(JSON.stringify([ns, id]))?.values() ?? []]
    const key = ([path, task, index]: typeof found[number]) => writesSortKey(path, task, index)
    return found.sort((a, b) => compareWritesSortKeys(key(a), key(b)))
      .map(([, task, , channel, ...value]) => ({ task, channel, value }))
  }
}
