// The session store of the Claude Agent SDK: VARVE_URL, VARVE_KEY; VARVE_DATA may name a folder with claude-code/*.jsonl.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { deleteSession, forkSession, getSessionMessages, importSessionToStore, listSessions } from '@anthropic-ai/claude-agent-sdk'
import { Varve } from '@varve/client'
import { VarveSessionStore } from '../dist/index.js'

let made = 0
const varve = new Varve()
const newStore = options => new VarveSessionStore(varve, { prefix: `claude-${process.pid}-${made++}`, ...options })
const entry = more => ({ type: 'x', ...more })
const key = { projectKey: 'project', sessionId: 'session' }, of = subpath => ({ ...key, subpath: `subagents/${subpath}` })

test('what is appended is loaded', async () => {
  const store = newStore(), all = ['b', 'a', 'z', 'm'].map((uuid, n) => entry({ uuid, n }))
  assert.equal(await store.load(key), null)
  await store.append(key, [])
  assert.equal(await store.load(key), null)
  await store.append(key, all.slice(0, 2))
  await store.append(key, all.slice(2))
  await store.append(key, [])
  await store.append(of('agent-1'), [entry({ uuid: 'b', of: 'agent' })])
  await store.append({ ...key, projectKey: 'other' }, [entry({ of: 'other' })])
  assert.deepEqual(await store.load(key), all)
  assert.deepEqual(await store.load(of('agent-1')), [entry({ uuid: 'b', of: 'agent' })])
  assert.deepEqual(await store.load({ ...key, projectKey: 'other' }), [entry({ of: 'other' })])
  assert.deepEqual([await store.load(of('agent-2')), await store.load({ ...key, projectKey: 'p' })], [null, null])
})

test('a uuid is stored once', async () => {
  const store = newStore(), entries = ['a', 'b', 'c'].map(uuid => entry({ uuid }))
  await store.append(key, [entries[0], entries[0], entries[1]])
  await store.append(key, entries.slice(0, 2))
  await store.append(key, entries)
  assert.deepEqual(await store.load(key), entries)
  await store.append(key, [entry({ title: 't' })])
  await store.append(key, [entry({ title: 't' })])
  assert.equal((await store.load(key)).length, 5)
})

test('lists and deletions', async () => {
  const store = newStore(), ids = async () => (await store.listSessions('project')).map(({ sessionId }) => sessionId).sort()
  await store.delete(key)
  assert.deepEqual([await ids(), await store.listSubkeys(key)], [[], []])
  for (const one of [key, of('agent-1'), of('agent-2'), { ...key, sessionId: 's2' }, { ...key, projectKey: 'other' }, { ...key, sessionId: 's3', subpath: 'subagents/x' }]) {
    await store.append(one, [entry({})])
  }
  assert.deepEqual([await ids(), (await store.listSubkeys(key)).sort()], [['s2', 'session'], ['subagents/agent-1', 'subagents/agent-2']])
  for (const { mtime } of await store.listSessions('project')) assert.ok(Number.isInteger(mtime) && Math.abs(Date.now() - mtime) < 60_000)
  await store.delete(of('agent-1'))
  assert.deepEqual([await store.load(of('agent-1')), await store.listSubkeys(key), (await store.load(key)).length], [null, ['subagents/agent-2'], 1])
  await store.delete(key)
  assert.deepEqual([await store.load(key), await store.load(of('agent-2')), await store.listSubkeys(key), await ids()], [null, null, [], ['s2']])
  assert.equal((await store.load({ ...key, projectKey: 'other' })).length, 1)
})

const uuid = n => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const sessionId = uuid(999)

/** A transcript of an agent that reads file after file. */
function transcript(files) {
  const entries = [{ type: 'summary', summary: 'Files', leafUuid: uuid(1) }]
  const say = (role, content, more = {}) => {
    const n = entries.length
    entries.push({
      parentUuid: n > 1 ? uuid(n - 1) : null, isSidechain: false, userType: 'external', cwd: '/repo', sessionId, version: '2.1.0', type: role,
      message: { role, content, ...more }, uuid: uuid(n), timestamp: new Date(1.7e12 + n).toISOString(),
    })
  }
  say('user', 'Read the files.')
  for (let n = 1; n <= files; n++) {
    say('assistant', [{ type: 'tool_use', id: `t${n}`, name: 'Read', input: { n } }], { id: `m${n}`, model: 'claude-sonnet-4-5', type: 'message', usage: { input_tokens: 1 } })
    say('user', [{ type: 'tool_result', tool_use_id: `t${n}`, content: `${`line ${n}\n`.repeat(300)}the key of file ${n} is secret-${n * 7919}.${`\nline ${n}`.repeat(300)}` }])
    entries.at(-1).toolUseResult = { file: n }
  }
  say('assistant', [{ type: 'text', text: 'Done.' }], { model: 'claude-sonnet-4-5' })
  return entries
}

test('a session is compacted, and resumes with what is left', async () => {
  const settings = { window_tokens: 20_000 }, store = newStore({ settings }), project = { projectKey: 'p', sessionId }
  const entries = transcript(60)
  for (let n = 0; n < entries.length; n += 20) await store.append(project, entries.slice(n, n + 20))
  const session = await store.session(project)
  await session.compact(60)
  assert.deepEqual(await store.load(project), entries)
  const view = await session.context()
  assert.ok(view.checkpoint > 0 && view.tokens < 20_000, `${view.tokens} tokens`)
  assert.ok(!JSON.stringify(view.messages).includes('claude_code'))
  const found = await session.call('grep_results', { pattern: 'the key of file 1 is' })
  assert.match(found.text, /secret-7919\./)

  const resuming = new VarveSessionStore(varve, { ...store.options, compacted: true })
  const left = await resuming.load(project)
  assert.ok(JSON.stringify(left).length < 20_000 * 5, 'as long as it was')
  assert.ok(!JSON.stringify(left).includes('toolUseResult'))
  assert.deepEqual(left.at(-1), { ...entries.at(-1), parentUuid: left.at(-2).uuid })
  await resuming.append(project, [{ ...entries[1], uuid: uuid(500), parentUuid: entries.at(-1).uuid, message: { role: 'user', content: 'And now?' } }])
  const resumed = await resuming.load(project)
  const said = await getSessionMessages(sessionId, { dir: '/p', sessionStore: { load: async () => resumed, append() {} } })
  assert.equal(said.at(-1).message.content, 'And now?')
  assert.deepEqual(said.map(one => one.uuid), resumed.flatMap(one => one.uuid ?? []), 'one line from the first to the last')
})

test('the functions of the SDK use the store', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'claude-')), store = newStore(), entries = transcript(3)
  process.env.CLAUDE_CONFIG_DIR = folder
  mkdirSync(join(folder, 'projects', '-repo'), { recursive: true })
  writeFileSync(join(folder, 'projects', '-repo', `${sessionId}.jsonl`), entries.map(one => JSON.stringify(one) + '\n').join(''))
  const options = { dir: '/repo', sessionStore: store }
  for (let times = 0; times < 2; times++) await importSessionToStore(sessionId, store, { dir: '/repo', batchSize: 3 })
  const listed = await listSessions(options)
  assert.deepEqual(listed.map(one => one.sessionId), [sessionId])
  assert.equal((await getSessionMessages(sessionId, options)).length, entries.length - 1)
  const fork = await forkSession(sessionId, options)
  assert.equal((await getSessionMessages(fork.sessionId, options)).length, entries.length - 1)
  await deleteSession(sessionId, options)
  assert.deepEqual((await listSessions(options)).map(one => one.sessionId), [fork.sessionId])
})

const recorded = process.env.VARVE_DATA && join(process.env.VARVE_DATA, 'claude-code')
test('recorded transcripts come back as they were', { skip: !recorded && 'VARVE_DATA names no recordings' }, async () => {
  for (const name of readdirSync(recorded)) {
    const entries = readFileSync(join(recorded, name), 'utf8').split('\n').flatMap(line => { try { return [JSON.parse(line)] } catch { return [] } })
    const seen = new Set(), first = entries.filter(({ uuid: id }) => !id || !seen.has(id) && seen.add(id))
    const store = newStore(), project = { projectKey: 'recorded', sessionId: name }
    for (let n = 0; n < entries.length; n += 500) await store.append(project, entries.slice(n, n + 500))
    assert.deepEqual(await store.load(project), first, name)
    const view = await (await store.session(project)).context({ fit: 'window' })
    assert.ok(view.messages.length > 0, name)
  }
})
