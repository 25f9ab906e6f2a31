import type { McpHttpServerConfig, SessionKey, SessionStore, SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import { APIError, NotFound, type Session, type types, type Varve } from '@varve/client'

interface Block {
  type: string
}

/** An entry as it is stored: as the message that the model was sent, and empty if it was sent none. Views leave the rest out. */
interface Stored {
  role: 'user' | 'assistant'
  content: string | Block[]
  claude_code: SessionStoreEntry
}

export interface Options {
  /** Distinguishes the sessions of several stores. */
  prefix?: string
  /** Has load return what compaction has left, so that a resumed session fits the window; the log keeps all. */
  compacted?: boolean
  /** Of new sessions: model, window_tokens, policy, … */
  settings?: Omit<types.NewSession, 'id' | 'format' | 'metadata'>
}

/** A session store of the Claude Agent SDK. Entries are stored as messages of Anthropic's, which are compacted and found. */
export class VarveSessionStore implements SessionStore {
  readonly #prefix: string
  readonly #servers = new Map<string, { until: number, servers: Record<string, McpHttpServerConfig> }>()

  constructor(readonly varve: Varve, readonly options: Options = {}) {
    this.#prefix = options.prefix ?? 'claude'
  }

  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const session = await this.session(key)
    const given = firstOfEach(entries, new Set())
    try {
      await append(session, given)
    } catch (error) {
      if (!(error instanceof APIError) || error.code !== 'client_id_reused') throw error
      const known = new Set<string>()
      for await (const { client_id } of session.messages({ limit: 1000 })) if (client_id) known.add(client_id)
      await append(session, firstOfEach(given, known))
    }
  }

  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const session = await this.session(key), entries: SessionStoreEntry[] = []
    try {
      if (this.options.compacted && (await session.read()).checkpoint > 0) return await compacted(session, key)
      for await (const { message } of session.messages({ limit: 1000 })) entries.push(entryOf(message as unknown as Stored))
    } catch (error) {
      unlessMissing(error)
    }
    return entries.length ? entries : null
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string, mtime: number }[]> {
    const found = []
    for await (const { metadata, last_append_at, created_at } of this.#sessions({ claude_project: projectKey, claude_subpath: '' })) {
      found.push({ sessionId: metadata['claude_session'] as string, mtime: Date.parse(last_append_at ?? created_at) })
    }
    return found
  }

  async listSubkeys({ projectKey, sessionId }: SessionKey): Promise<string[]> {
    const found: string[] = []
    for await (const { metadata } of this.#sessions({ claude_project: projectKey, claude_session: sessionId })) {
      if (metadata['claude_subpath']) found.push(metadata['claude_subpath'])
    }
    return found
  }

  async delete(key: SessionKey): Promise<void> {
    const subkeys = key.subpath ? [] : await this.listSubkeys(key)
    for (const of of [key, ...subkeys.map(subpath => ({ ...key, subpath }))]) await (await this.session(of)).delete().catch(unlessMissing)
  }

  /**
   * Returns the option mcpServers: the tools that read back what left a session, none before it has entries. Claude gets a
   * token of the session, which ends after a day, and no key. One token serves for half of that: a session has few.
   */
  async mcpServers(sessionId?: string): Promise<Record<string, McpHttpServerConfig>> {
    if (!sessionId) return {}
    const known = this.#servers.get(sessionId)
    if (known && known.until > Date.now()) return known.servers
    const { value: session } = await this.#sessions({ claude_session: sessionId, claude_subpath: '' }).next()
    if (!session) return {}
    const { token } = await this.varve.request<{ token: string }>('POST', `/v1/sessions/${encodeURIComponent(session.id)}/tokens`,
      { body: { name: 'claude', ttl_seconds: 86_400 }, key: '' })
    const headers = { Authorization: `Bearer ${token}` }
    const servers: Record<string, McpHttpServerConfig> = { varve: { type: 'http', url: `${this.varve.transport.url}/mcp`, headers } }
    this.#servers.set(sessionId, { until: Date.now() + 43_200_000, servers })
    return servers
  }

  /** Returns the session of a transcript, with its view, search and tools. */
  async session({ projectKey, sessionId, subpath = '' }: SessionKey): Promise<Session> {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(projectKey)) // it may be longer than an id
    const project = Array.from(new Uint8Array(digest, 0, 6), byte => byte.toString(16).padStart(2, '0')).join('')
    return this.varve.session([this.#prefix, project, sessionId, subpath].filter(Boolean).join(':'), {
      ...this.options.settings, format: 'anthropic',
      metadata: { claude_store: this.#prefix, claude_project: projectKey, claude_session: sessionId, claude_subpath: subpath },
    })
  }

  #sessions(metadata: Record<string, string>): AsyncGenerator<types.Session> {
    return this.varve.sessions({ metadata: { claude_store: this.#prefix, ...metadata } })
  }
}

async function append(session: Session, entries: SessionStoreEntry[]): Promise<void> {
  if (entries.length) await session.append(entries.map(storedOf), { client_ids: entries.map(({ uuid }) => uuid ?? null) })
}

/** Returns the entries but those with a uuid that is known or was before, and makes theirs known. */
function firstOfEach(entries: SessionStoreEntry[], known: Set<string>): SessionStoreEntry[] {
  return entries.filter(({ uuid }) => !uuid || !known.has(uuid) && known.add(uuid))
}

function storedOf(entry: SessionStoreEntry): Stored {
  const { type, message = {}, attachment } = entry as SessionStoreEntry & { message?: Partial<Stored>, attachment?: { type: string, prompt: string } }
  if (attachment?.type === 'queued_command') return { role: 'user', content: attachment.prompt, claude_code: entry }
  const { role, content, ...rest } = message as Partial<Stored> & { model?: string }
  const sent = role === type && (role === 'user' || role === 'assistant') && !entry['isApiErrorMessage'] && rest.model !== '<synthetic>'
  if (!sent || !content?.length) return { role: 'user', content: [], claude_code: entry }
  return { role, content, claude_code: { ...entry, message: rest } }
}

function entryOf({ role, content, claude_code: entry }: Stored): SessionStoreEntry {
  return content.length && entry['message'] ? { ...entry, message: { role, content, ...entry['message'] } } : entry
}

/** Returns the view as a transcript: what is left of the entries, and entries made for what stands for others, one after the other. */
async function compacted(session: Session, { sessionId }: SessionKey): Promise<SessionStoreEntry[]> {
  const entries: SessionStoreEntry[] = []
  let parentUuid: string | null = null
  for await (const stored of units(session)) {
    const { role, content, claude_code } = stored
    const made = { sessionId, timestamp: new Date().toISOString(), userType: 'external', isSidechain: false, message: { role, content } }
    const entry: SessionStoreEntry = claude_code ? { ...entryOf(stored as Stored) } : { type: role, uuid: crypto.randomUUID(), parentUuid, ...made }
    delete entry['toolUseResult'] // a copy of what the view may have less of
    if (entry.uuid) Object.assign(entry, { parentUuid })
    parentUuid = entry.uuid ?? parentUuid
    entries.push(entry)
  }
  return entries
}

/** Yields the messages of the view as it is stored. */
async function* units(session: Session): AsyncGenerator<Partial<Stored> & Pick<Stored, 'role' | 'content'>> {
  for (let from_seq: number | null = 1; from_seq !== null;) {
    const path: string = `/v1/sessions/${encodeURIComponent(session.id)}/context/units`
    const page: { data: { messages: { message: Stored }[] }[], next_seq: number | null } =
      await session.varve.request('GET', path, { query: { from_seq, limit: 1000 } })
    for (const { messages } of page.data) yield* messages.map(({ message }) => message)
    from_seq = page.next_seq
  }
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
