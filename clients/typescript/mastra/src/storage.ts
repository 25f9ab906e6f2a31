import type { MastraDBMessage } from '@mastra/core/agent'
import type { StorageThreadType } from '@mastra/core/memory'
import {
  calculatePagination, filterByDateRange, MemoryStorage, normalizePerPage, storageMessageMatchesMetadataFilter, validateStorageMetadataFilter,
} from '@mastra/core/storage'
import type {
  StorageCloneThreadInput, StorageCloneThreadOutput, StorageListMessagesByResourceIdInput, StorageListMessagesInput,
  StorageListMessagesOutput, StorageListThreadsInput, StorageListThreadsOutput, StorageOrderBy, StorageResourceType,
} from '@mastra/core/storage'
import type { Session, types, Varve } from '@varve/client'
import { Records, unlessMissing } from './records.js'
import { Thread } from './thread.js'

type Update = Parameters<MemoryStorage['updateMessages']>[0]['messages'][number]

const maxThreads = 1000
const ofMessages = { mastra: 'messages' }

/**
 * The memory domain of Mastra's storage. The messages of a thread are a session of the thread's id, so that they are compacted,
 * found and read back; threads and resources are sessions of one message.
 */
export class VarveMemoryStorage extends MemoryStorage {
  override readonly supportsPartialThreadUpdate = true
  readonly #records: Records<StorageThreadType>
  readonly #resources: Records<StorageResourceType>
  readonly #threads = new Map<string, Thread>()
  readonly #threadOf = new Map<string, string>() // by the id of a message that was seen

  /** settings are those of a new thread's session: model, window_tokens, policy, … */
  constructor(readonly varve: Varve, readonly settings: Omit<types.NewSession, 'id' | 'format' | 'metadata'> = {}) {
    super()
    this.#records = new Records(varve, 'mastra-thread', ({ resourceId }) => ({ mastra_resource: resourceId }))
    this.#resources = new Records(varve, 'mastra-resource', () => ({}))
  }

  override async init(): Promise<void> {}

  /** Erases all threads, messages and resources that Mastra has stored. */
  async dangerouslyClearAll(): Promise<void> {
    const threads = (await this.#records.list({})).map(({ id }) => id)
    for (const threadId of new Set([...threads, ...await this.#stored()])) await this.deleteThread({ threadId })
    for (const { id } of await this.#resources.list({})) await this.#resources.delete(id)
  }

  /** Returns the session of a thread's messages, with its view, search and tools. */
  session(threadId: string): Session {
    return this.#thread(threadId).session
  }

  #thread(threadId: string): Thread {
    const known = this.#threads.get(threadId) ??
      new Thread(this.varve.session(threadId, { ...this.settings, format: 'ai-sdk', metadata: ofMessages }))
    this.#threads.delete(threadId)
    this.#threads.set(threadId, known)
    if (this.#threads.size > maxThreads) this.#threads.delete(this.#threads.keys().next().value as string)
    return known
  }

  async getThreadById({ threadId, resourceId }: { threadId: string, resourceId?: string }): Promise<StorageThreadType | null> {
    const thread = await this.#records.get(threadId)
    return thread && (resourceId === undefined || thread.resourceId === resourceId) ? thread : null
  }

  async saveThread({ thread }: { thread: StorageThreadType }): Promise<StorageThreadType> {
    return this.#records.put(thread)
  }

  async updateThread({ id, title, metadata }: { id: string, title?: string, metadata?: Record<string, unknown> }): Promise<StorageThreadType> {
    const thread = await this.#existing(id)
    const changed = title === undefined ? {} : { title }
    return this.#records.put({ ...thread, ...changed, metadata: { ...thread.metadata, ...metadata }, updatedAt: later(thread) })
  }

  override async updateThreadResourceId({ threadId, resourceId }: { threadId: string, resourceId: string }): Promise<StorageThreadType> {
    const thread = await this.#existing(threadId)
    if (thread.resourceId === resourceId) return thread
    await this.#thread(threadId).change(messages => {
      for (const [id, message] of messages) messages.set(id, { ...message, resourceId })
    })
    return this.#records.put({ ...thread, resourceId, updatedAt: later(thread) })
  }

  async #existing(id: string): Promise<StorageThreadType> {
    const thread = await this.#records.get(id)
    if (!thread) throw new Error(`Thread with id ${id} not found`)
    return thread
  }

  async deleteThread({ threadId }: { threadId: string }): Promise<void> {
    await this.session(threadId).delete().catch(unlessMissing)
    await this.#records.delete(threadId)
    this.#threads.delete(threadId)
  }

  async listThreads({ page = 0, perPage: asked, orderBy, filter }: StorageListThreadsInput): Promise<StorageListThreadsOutput> {
    this.validatePaginationInput(page, asked ?? 100)
    this.validateMetadataKeys(filter?.metadata)
    const { resourceId, metadata = {} } = filter ?? {}
    const found = await this.#records.list(resourceId === undefined ? {} : { mastra_resource: resourceId })
    const has = (thread: StorageThreadType) => Object.entries(metadata).every(([key, value]) => alike(thread.metadata?.[key], value))
    const sorted = this.#sorted(found.filter(has), orderBy, 'DESC')
    const [threads, more] = pageOf(sorted, page, asked, 100)
    return { threads, ...more }
  }

  async listMessages(asked: StorageListMessagesInput): Promise<StorageListMessagesOutput> {
    const ids = [...new Set([asked.threadId].flat())]
    if (!ids.length || ids.some(id => !id.trim())) throw new Error('threadId must be a non-empty string or array of non-empty strings')
    return this.#list(ids, asked)
  }

  override async listMessagesByResourceId(asked: StorageListMessagesByResourceIdInput): Promise<StorageListMessagesOutput> {
    const threads = await this.#records.list({ mastra_resource: asked.resourceId })
    return this.#list(threads.map(({ id }) => id), asked)
  }

  /** Returns a page of the messages of threads, and those that are asked for beside it. */
  async #list(
    threads: string[], { resourceId, include = [], filter, page = 0, perPage, orderBy }: Partial<StorageListMessagesInput>,
  ): Promise<StorageListMessagesOutput> {
    const wanted = validateStorageMetadataFilter(filter?.metadata)
    const all = (await Promise.all(threads.map(id => this.#messages(id, resourceId)))).flat()
    const matching = filterByDateRange(all, ({ createdAt }) => createdAt, filter?.dateRange)
      .filter(({ content }) => storageMessageMatchesMetadataFilter(content, wanted))
    const [found, more] = pageOf(this.#sorted(matching, orderBy, 'ASC'), page, perPage, 40)
    const messages = new Map(found.map(one => [one.id, one]))
    for (const item of include) for (const one of await this.#around(item, resourceId)) if (!messages.has(one.id)) messages.set(one.id, one)
    const shown = this.#sorted([...messages.values()], orderBy, 'ASC')
    if (include.length && !wanted && perPage !== 0) {
      more.hasMore = shown.filter(({ threadId = '' }) => threads.includes(threadId)).length < more.total
    }
    return { messages: shown, ...more }
  }

  async #messages(threadId: string, resourceId?: string): Promise<MastraDBMessage[]> {
    const all = [...(await this.#thread(threadId).messages()).values()]
    for (const { id } of all) this.#threadOf.set(id, threadId)
    return resourceId ? all.filter(one => one.resourceId === resourceId) : all
  }

  /** Returns the threads that have messages. */
  async #stored(): Promise<string[]> {
    const ids: string[] = []
    for await (const { id } of this.varve.sessions({ metadata: ofMessages, limit: 100 })) ids.push(id)
    return ids
  }

  /** Returns a message with its neighbours. */
  async #around(
    { id, withPreviousMessages: before = 0, withNextMessages: behind = 0 }: NonNullable<StorageListMessagesInput['include']>[number],
    resourceId?: string,
  ): Promise<MastraDBMessage[]> {
    const thread = (await this.#find([id])).get(id)
    if (!thread) return []
    const all = this.#sorted(await this.#messages(thread, resourceId), undefined, 'ASC'), at = all.findIndex(one => one.id === id)
    return at < 0 ? [] : all.slice(Math.max(0, at - before), at + behind + 1)
  }

  /** Returns the threads of messages. Of messages that this process has not seen, it reads all threads. */
  async #find(ids: string[]): Promise<Map<string, string>> {
    const seen = new Set(ids.map(id => this.#threadOf.get(id)).filter(thread => thread !== undefined))
    for (const id of seen) await this.#messages(id)
    if (ids.some(id => !this.#threadOf.has(id))) for (const id of await this.#stored()) await this.#messages(id)
    const found = new Map<string, string>()
    for (const id of ids) {
      const thread = this.#threadOf.get(id)
      if (thread && (await this.#thread(thread).messages()).has(id)) found.set(id, thread)
    }
    return found
  }

  async listMessagesById({ messageIds }: { messageIds: string[] }): Promise<{ messages: MastraDBMessage[] }> {
    const threads = await this.#find(messageIds), messages: MastraDBMessage[] = []
    for (const [id, thread] of threads) messages.push((await this.#thread(thread).messages()).get(id) as MastraDBMessage)
    return { messages: this.#sorted(messages, undefined, 'ASC') }
  }

  async saveMessages({ messages }: { messages: MastraDBMessage[] }): Promise<{ messages: MastraDBMessage[] }> {
    for (const threadId of new Set(messages.map(one => one.threadId))) {
      if (!threadId) throw new Error('a message has no threadId')
      const of = messages.filter(one => one.threadId === threadId)
      await this.#thread(threadId).change(all => of.forEach(one => all.set(one.id, one)))
      for (const { id } of of) this.#threadOf.set(id, threadId)
      await this.#touch(threadId)
    }
    return { messages }
  }

  async updateMessages({ messages: updates }: { messages: Update[] }): Promise<MastraDBMessage[]> {
    const threads = await this.#find(updates.map(({ id }) => id)), updated: MastraDBMessage[] = []
    for (const update of updates) {
      const from = threads.get(update.id)
      if (!from) continue
      const message = changed((await this.#thread(from).messages()).get(update.id) as MastraDBMessage, update), to = message.threadId ?? from
      if (to !== from) await this.#remove(from, [update.id])
      await this.#thread(to).change(all => all.set(message.id, message))
      this.#threadOf.set(message.id, to)
      await this.#touch(to)
      updated.push(message)
    }
    return updated
  }

  override async deleteMessages(messageIds: string[]): Promise<void> {
    const found = await this.#find(messageIds)
    for (const thread of new Set(found.values())) await this.#remove(thread, messageIds)
  }

  async #remove(thread: string, ids: string[]): Promise<void> {
    await this.#thread(thread).change(all => ids.forEach(id => all.delete(id)))
    ids.forEach(id => this.#threadOf.delete(id))
    await this.#touch(thread)
  }

  async #touch(threadId: string): Promise<void> {
    const thread = await this.#records.get(threadId)
    if (thread) await this.#records.put({ ...thread, updatedAt: later(thread) })
  }

  override async cloneThread(
    { sourceThreadId, newThreadId = crypto.randomUUID(), resourceId, title, metadata, options }: StorageCloneThreadInput,
  ): Promise<StorageCloneThreadOutput> {
    const source = await this.#records.get(sourceThreadId)
    if (!source) throw new Error(`Source thread with id ${sourceThreadId} not found`)
    if (await this.#records.get(newThreadId)) throw new Error(`Thread with id ${newThreadId} already exists`)
    const { startDate, endDate, messageIds } = options?.messageFilter ?? {}
    const all = this.#sorted(await this.#messages(sourceThreadId), undefined, 'ASC').filter(({ id, createdAt }) =>
      (!messageIds?.length || messageIds.includes(id)) && (!startDate || createdAt >= startDate) && (!endDate || createdAt <= endDate))
    const taken = all.slice(-(options?.messageLimit || all.length || 1)), last = taken.at(-1), now = new Date(), owner = resourceId ?? source.resourceId
    const named = title ?? (source.title ? `Clone of ${source.title}` : undefined)
    const thread = await this.#records.put({
      id: newThreadId, resourceId: owner, createdAt: now, updatedAt: now, ...(named !== undefined && { title: named }),
      metadata: { ...metadata, clone: { sourceThreadId, clonedAt: now, ...(last && { lastMessageId: last.id }) } },
    })
    const copies = taken.map(one => ({ ...one, id: crypto.randomUUID(), threadId: newThreadId, resourceId: owner }))
    if (copies.length) await this.saveMessages({ messages: copies })
    return { thread, clonedMessages: copies, messageIdMap: Object.fromEntries(taken.map((one, i) => [one.id, copies[i]?.id ?? ''])) }
  }

  override async getResourceById({ resourceId }: { resourceId: string }): Promise<StorageResourceType | null> {
    return await this.#resources.get(resourceId) ?? null
  }

  override async saveResource({ resource }: { resource: StorageResourceType }): Promise<StorageResourceType> {
    return this.#resources.put(resource)
  }

  override async updateResource(
    { resourceId, workingMemory, metadata }: { resourceId: string, workingMemory?: string, metadata?: Record<string, unknown> },
  ): Promise<StorageResourceType> {
    const now = new Date(), before = await this.#resources.get(resourceId) ?? { id: resourceId, createdAt: now, updatedAt: now }
    const memory = workingMemory === undefined ? {} : { workingMemory }
    return this.#resources.put({ ...before, ...memory, metadata: { ...before.metadata, ...metadata }, updatedAt: now })
  }

  #sorted<T extends { createdAt: Date, updatedAt?: Date }>(list: T[], orderBy: StorageOrderBy | undefined, otherwise: 'ASC' | 'DESC'): T[] {
    const { field, direction } = this.parseOrderBy(orderBy, otherwise), sign = direction === 'ASC' ? 1 : -1
    return list.toSorted((a, b) => sign * (Number(a[field] ?? 0) - Number(b[field] ?? 0)))
  }
}

function pageOf<T>(list: T[], page: number, asked: number | false | undefined, otherwise: number):
[T[], { total: number, page: number, perPage: number | false, hasMore: boolean }] {
  const size = normalizePerPage(asked, otherwise), { offset, perPage } = calculatePagination(page, asked, size)
  const found = list.slice(offset, offset + size)
  return [found, { total: size ? list.length : 0, page, perPage, hasMore: size > 0 && offset + found.length < list.length }]
}

/** Returns a message with an update of it: what content and its metadata have else stays. */
function changed(message: MastraDBMessage, { content, ...update }: Update): MastraDBMessage {
  const given = Object.fromEntries(Object.entries(update).filter(([, value]) => value !== undefined))
  const metadata = { ...message.content.metadata, ...content?.metadata }
  const merged = { ...message.content, ...content, ...(content?.metadata || message.content.metadata ? { metadata } : {}) }
  return { ...message, ...given, content: content ? merged : message.content }
}

function later({ updatedAt }: StorageThreadType): Date {
  return new Date(Math.max(Date.now(), updatedAt.getTime() + 1))
}

function alike(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
