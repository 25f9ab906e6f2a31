import type { RunnableConfig } from '@langchain/core/runnables'
import {
  BaseCheckpointSaver, type ChannelVersions, type Checkpoint, type CheckpointListOptions, type CheckpointMetadata, type CheckpointPendingWrite,
  type CheckpointTuple, copyCheckpoint, getCheckpointId, maxChannelVersion, type PendingWrite, type SerializerProtocol, TASKS, WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint'
import { NotFound, type Varve } from '@varve/client'
import { type Change, elementsOf, type Saved, type Text, Thread } from './thread.js'

const maxThreads = 100

/** A checkpointer of LangGraph. A checkpoint costs what is new in it: of an array that has grown only its new elements are stored. */
export class VarveSaver extends BaseCheckpointSaver {
  readonly #threads = new Map<string, Thread>()
  readonly #prefix: string

  /** prefix distinguishes the threads of several graphs. */
  constructor(readonly varve: Varve, { prefix = 'langgraph', serde }: { prefix?: string, serde?: SerializerProtocol } = {}) {
    super(serde)
    this.#prefix = prefix
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread_id, checkpoint_ns = '' } = config.configurable ?? {}
    if (thread_id === undefined) return undefined
    const thread = await this.#thread(thread_id).refresh()
    const saved = thread.find(checkpoint_ns, getCheckpointId(config))
    return saved && this.#tuple(thread_id, thread, saved)
  }

  async* list(config: RunnableConfig, { limit = Infinity, before, filter = {} }: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {}, end: unknown = before?.configurable?.['checkpoint_id']
    for await (const id of thread_id === undefined ? this.#all() : [thread_id as string]) {
      const thread = await this.#thread(id).refresh()
      for (const saved of thread.newest(checkpoint_ns)) {
        if (checkpoint_id && saved.id !== checkpoint_id || typeof end === 'string' && saved.id >= end) continue
        const metadata = await this.serde.loadsTyped(...saved.metadata)
        if (!Object.entries(filter).every(([key, value]) => metadata[key] === value)) continue
        if (limit-- <= 0) return
        yield this.#tuple(id, thread, saved)
      }
    }
  }

  async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions): Promise<RunnableConfig> {
    const { thread_id, checkpoint_ns = '', checkpoint_id: parent } = config.configurable ?? {}
    if (thread_id === undefined) throw new Error('the config has no thread_id in configurable')
    const thread = this.#thread(thread_id)
    if (parent && !thread.find(checkpoint_ns, parent)) await thread.refresh()
    const before = parent ? thread.find(checkpoint_ns, parent)?.values : undefined
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint)
    const channels: Record<string, Change | null> = {}
    for (const [channel, version] of Object.entries(newVersions)) {
      channels[channel] = channel in values ? { version, ...await this.#change(values[channel], elementsOf(before?.get(channel))) } : null
    }
    await thread.append({
      ns: checkpoint_ns, id: checkpoint.id, parent, checkpoint: await this.#text(rest), metadata: await this.#text(metadata), channels,
    })
    return { configurable: { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id } }
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], task: string, path = ''): Promise<void> {
    const { thread_id, checkpoint_ns = '', checkpoint_id } = config.configurable ?? {}
    if (thread_id === undefined || checkpoint_id === undefined) throw new Error('the config has no thread_id or checkpoint_id in configurable')
    const texts = writes.map(async ([channel, value], index) =>
      [WRITES_IDX_MAP[channel] ?? index, channel, ...await this.#text(value)] as [number, string, string, string])
    await this.#thread(thread_id).append({ ns: checkpoint_ns, id: checkpoint_id, task, path, writes: await Promise.all(texts) })
  }

  async deleteThread(thread: string): Promise<void> {
    await this.#thread(thread).session.delete().catch(error => {
      if (!(error instanceof NotFound)) throw error
    })
    this.#threads.delete(thread)
  }

  /** Yields the ids of all threads. */
  async* #all(): AsyncGenerator<string> {
    for await (const { metadata } of this.varve.sessions({ metadata: { langgraph: this.#prefix } })) yield metadata['thread_id'] as string
  }

  #thread(id: string): Thread {
    const thread = this.#threads.get(id) ?? new Thread(this.varve.session(`${this.#prefix}:${id}`, {
      format: 'openai-chat', policy: { enabled: false }, metadata: { langgraph: this.#prefix, thread_id: id },
    }))
    this.#threads.delete(id)
    this.#threads.set(id, thread)
    if (this.#threads.size > maxThreads) this.#threads.delete(this.#threads.keys().next().value as string)
    return thread
  }

  async #text(value: unknown): Promise<Text> {
    const [type, bytes] = await this.serde.dumpsTyped(value)
    return [type, type === 'json' ? new TextDecoder().decode(bytes) : btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))]
  }

  async #value([type, text]: Text): Promise<unknown> {
    return this.serde.loadsTyped(type, type === 'json' ? text : Uint8Array.from(atob(text), byte => byte.charCodeAt(0)))
  }

  /** Returns a value as the difference from the elements that it had before. */
  async #change(value: unknown, before: string[] = []): Promise<{ keep: number, add: string[] } | { value: Text }> {
    if (!Array.isArray(value)) return { value: await this.#text(value) }
    const texts = await Promise.all(value.map(element => this.#text(element)))
    if (texts.some(([type]) => type !== 'json')) return { value: await this.#text(value) }
    const differs = texts.findIndex(([, text], n) => text !== before[n])
    const keep = differs < 0 ? texts.length : differs
    return { keep, add: texts.slice(keep).map(([, text]) => text) }
  }

  async #tuple(thread_id: string, thread: Thread, { ns, id, parent, ...saved }: Saved): Promise<CheckpointTuple> {
    const checkpoint: Checkpoint = { ...await this.#value(saved.checkpoint) as Omit<Checkpoint, 'channel_values'>, channel_values: {} }
    for (const [channel, value] of saved.values) {
      if (checkpoint.channel_versions[channel] !== value.version) continue
      const text: Text = 'value' in value ? value.value : ['json', `[${elementsOf(value)?.join(',')}]`]
      checkpoint.channel_values[channel] = await this.#value(text)
    }
    const writesOf = (checkpoint_id: string) => Promise.all(thread.writes(ns, checkpoint_id)
      .map(async ({ task, channel, value }): Promise<CheckpointPendingWrite> => [task, channel, await this.#value(value)]))
    if (checkpoint.v < 4 && parent) { // such a checkpoint has what was sent to it as its parent's writes
      checkpoint.channel_values[TASKS] = (await writesOf(parent)).filter(([, channel]) => channel === TASKS).map(([, , value]) => value)
      const versions = Object.values(checkpoint.channel_versions)
      checkpoint.channel_versions[TASKS] = versions.length ? maxChannelVersion(...versions) : this.getNextVersion(undefined)
    }
    const config = (checkpoint_id: string) => ({ configurable: { thread_id, checkpoint_ns: ns, checkpoint_id } })
    const metadata = await this.#value(saved.metadata) as CheckpointMetadata
    return { config: config(id), checkpoint, metadata, pendingWrites: await writesOf(id), ...(parent && { parentConfig: config(parent) }) }
  }
}
