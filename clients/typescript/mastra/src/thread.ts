import type { MastraDBMessage } from '@mastra/core/agent'
import { APIError, type Session } from '@varve/client'
import { fromStored, type Stored, toStored } from './messages.js'
import { unlessMissing } from './records.js'

const batch = 1000

/** The messages of a thread: those of its session's log. */
export class Thread {
  #messages = new Map<string, MastraDBMessage>()
  #seq = 0 // of the log, as far as it was read
  #steps = false // it has steps of a run that no message of Mastra has taken the place of

  constructor(readonly session: Session) {}

  /** Returns the messages by id, in the order of the log. */
  async messages(): Promise<Map<string, MastraDBMessage>> {
    try {
      const { last_seq } = await this.session.read()
      if (last_seq !== this.#seq) await this.#read(last_seq)
    } catch (error) {
      unlessMissing(error)
      this.#take([], 0, false)
    }
    return this.#messages
  }

  async #read(seq: number): Promise<void> {
    const found: MastraDBMessage[] = []
    let steps = false
    for await (const { message, superseded_by, removed_at } of this.session.messages({ limit: batch })) {
      if (superseded_by || removed_at) continue
      const one = fromStored(message as unknown as Stored)
      if (one) found.push(one)
      else steps = true
    }
    this.#take(found, seq, steps)
  }

  #take(messages: Iterable<MastraDBMessage>, seq: number, steps: boolean): void {
    this.#messages = new Map([...messages].map(one => [one.id, one]))
    this.#seq = seq
    this.#steps = steps
  }

  /** Changes the messages to what change makes of them, again if others have changed them meanwhile. */
  async change(change: (messages: Map<string, MastraDBMessage>) => void): Promise<void> {
    for (;;) {
      const before = await this.messages(), after = new Map(before)
      change(after)
      try {
        return await this.#save(before, after)
      } catch (error) {
        if (!(error instanceof APIError) || error.code !== 'stale_expected_seq') throw error
        this.#seq = -1
      }
    }
  }

  async #save(before: Map<string, MastraDBMessage>, after: Map<string, MastraDBMessage>): Promise<void> {
    const stored = [...after.values()].map(toStored), old = [...before.values()].map(toStored)
    const grown = !this.#steps && old.every((one, i) => JSON.stringify(one) === JSON.stringify(stored[i]))
    if (grown && stored.length === old.length) return
    if (!stored.length) {
      await this.session.delete()
      this.#take([], 0, false)
      return
    }
    if (!grown) {
      await this.session.replace(stored, { format: 'ai-sdk', expected_seq: this.#seq })
      this.#seq = -1 // the next read tells what the log is now
      return
    }
    let seq = this.#seq
    for (let at = old.length; at < stored.length; at += batch) {
      seq = (await this.session.append(stored.slice(at, at + batch), { expected_seq: seq })).last_seq
    }
    this.#take(after.values(), seq, false)
  }
}
