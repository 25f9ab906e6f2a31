// The client against a real server: VARVE_URL, VARVE_KEY. cmd/varve/clients_test.go builds the client and runs this.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test from 'node:test'
import { APIError, NotFound, Unreachable, Varve } from '../dist/index.js'

const varve = new Varve()
let number = 0
const newID = of => `typescript-${process.pid}-${of}-${number++}`
const user = content => ({ role: 'user', content })
const turn = n => [
  user(`question ${n}`),
  { role: 'assistant', content: null, tool_calls: [{ id: `c${n}`, type: 'function', function: { name: 'read', arguments: '{}' } }] },
  { role: 'tool', tool_call_id: `c${n}`, content: `word${n} `.repeat(3000) }, { role: 'assistant', content: `answer ${n}` }]
const all = async iterable => { const got = []; for await (const one of iterable) got.push(one); return got }

async function serving(t, answer) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.after(() => { server.closeAllConnections(); server.close() })
  return `http://127.0.0.1:${server.address().port}`
}

test('a turn is one call a model request', async () => {
  const session = varve.session(newID('turn'), { format: 'openai-chat', model: 'gpt-4o', metadata: { user: 'u1' } })
  const first = await session.step([user('hi 😀')])
  assert.deepEqual(first.messages, [user('hi 😀')])
  const call = { id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } }
  const view = await session.step(
    [{ role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'c1', content: 'x' }],
    { usage: { input_tokens: 12, output_tokens: 3 }, format: 'anthropic' })
  assert.deepEqual([view.format, view.messages.length, view.last_seq], ['anthropic', 3, 3])
  const found = await session.read({ include: 'policy' })
  assert.deepEqual([found.metadata, found.last_usage?.input_tokens], [{ user: 'u1' }, 12])
  assert.ok(found.policy.trigger > 0)
  assert.equal((await session.read()).policy, undefined)
})

test('pages are iterators', async () => {
  const session = varve.session(newID('pages'), { format: 'openai-chat' })
  await session.append(Array.from({ length: 250 }, (_, n) => user(`message ${n}`)))
  assert.deepEqual((await all(session.messages({ limit: 40 }))).map(m => m.seq), Array.from({ length: 250 }, (_, n) => n + 1))
  const newest = await all(session.messages({ order: 'desc' }))
  assert.deepEqual([newest.length, newest[0].message], [250, user('message 249')])
  const kind = newID('kind')
  for (let n = 0; n < 5; n++) await varve.session(`${kind}-${n}`, { format: 'openai-chat', metadata: { kind } }).create()
  const found = await all(varve.sessions({ metadata: { kind }, limit: 2 }))
  assert.deepEqual(found.map(s => s.id), [4, 3, 2, 1, 0].map(n => `${kind}-${n}`))
})

test('errors say what is wrong and where', async () => {
  const id = newID('errors')
  await assert.rejects(varve.session(id).append([user('x')]), e => e instanceof APIError && e instanceof NotFound && e.status === 404
    && e.code === 'not_found' && e.requestId.startsWith('req_'))
  const session = varve.session(id, { format: 'openai-chat', window_tokens: 1000 })
  await assert.rejects(session.append([user('x'), { content: 'no role' }]), e => e.status === 422 && e.pointer.startsWith('/messages/1'))
  const picture = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  await assert.rejects(session.step([{ role: 'user', content: [picture, picture] }], { wait: 0 }),
    e => e.code === 'window_exceeded' && e.appended.last_seq === 1)
  await assert.rejects(new Varve({ url: 'http://127.0.0.1:1', patienceMs: 300 }).request('GET', '/v1/limits'), Unreachable)
})

test('a client without a key says so at once', () => {
  const { VARVE_KEY } = process.env
  delete process.env.VARVE_KEY
  try {
    assert.throws(() => new Varve(), /VARVE_KEY is not set/)
    assert.ok(new Varve({ key: VARVE_KEY }))
  } finally {
    process.env.VARVE_KEY = VARVE_KEY
  }
})

const changes = {
  step: s => s.step([user('hi')]), append: s => s.append([user('hi')]), replace: s => s.replace([user('hi')]), create: s => s.create(),
  change: s => s.change({ metadata: { a: 'b' } }), compact: s => s.compact(60), upload: s => s.upload([Buffer.from('text')]),
  call: s => s.call('get_messages', { from_seq: 1, to_seq: 1 }, { call_id: 'c1' }), delete: s => s.delete(),
}

async function stateOf(session) {
  try {
    const { metadata, last_seq } = await session.read()
    const lists = [session.messages(), session.results(), session.runs()]
    return { metadata, last_seq, lists: await Promise.all(lists.map(async list => (await all(list)).length)) }
  } catch ({ code }) {
    return code
  }
}

// The first answer to each change is cut off at each of its bytes; with VARVE_SHORT at some.
test('a lost answer is asked for again and nothing comes twice', { timeout: 600_000 }, async t => {
  const keys = {}, lengths = {}, settings = { format: 'openai-chat' }
  const url = await serving(t, async (request, answer) => {
    const { method, headers: { authorization: Authorization, 'idempotency-key': key } } = request
    const [id, cut] = /typescript-\d+-cut-(\d+)-\d+/.exec(request.url)
    const body = Buffer.concat(await all(request))
    const done = await fetch(process.env.VARVE_URL + request.url, { method, headers: { Authorization, 'Idempotency-Key': key }, body })
    const text = Buffer.from(await done.arrayBuffer())
    const about = done.status === 204 ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`
    const whole = Buffer.concat([Buffer.from(`HTTP/1.1 ${done.status} OK\r\nConnection: close\r\n${about}\r\n`), text])
    lengths[id] = whole.length
    answer.socket.end((keys[id] ??= []).push(key) > 1 ? whole : whole.subarray(0, cut))
  })
  const flaky = new Varve({ url })
  for (const [name, change] of Object.entries(changes)) {
    const run = async cut => {
      const id = newID(`cut-${cut}`), session = varve.session(id, settings)
      await session.append([user('first')])
      await change(flaky.session(id, settings))
      const tries = keys[id].length, again = cut < lengths[id]
      assert.ok(tries > (again ? 1 : 0) && new Set(keys[id]).size === 1, `${name}, cut at ${cut}: ${tries} tries`)
      return [lengths[id], await stateOf(session)]
    }
    const [length, want] = await run(1e6)
    const cuts = Array.from({ length }, (_, n) => n).filter(n => n % (process.env.VARVE_SHORT ? 61 : 1) === 0).values()
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (const cut of cuts) assert.deepEqual((await run(cut))[1], want, `${name}, cut at ${cut}`)
    }))
  }
})

test('Retry-After is obeyed', async t => {
  let asked = 0
  const scripted = (...answers) => serving(t, (_, answer) => {
    const [status, headers, body] = answers[Math.min(asked++, answers.length - 1)]
    answer.writeHead(status, headers).end(JSON.stringify(body))
  })
  const began = Date.now()
  const busy = [503, { 'Retry-After-Ms': '700' }, { code: 'over_capacity', retryable: true }]
  assert.deepEqual(await new Varve({ url: await scripted(busy, [200, {}, {}]) }).request('GET', '/v1/x'), {})
  assert.ok(Date.now() - began >= 700)
  const late = [429, { 'Retry-After': '3600' }, { code: 'rate_limited', retryable: true }]
  await assert.rejects(new Varve({ url: await scripted(late) }).request('GET', '/v1/x'), e => e.retryAfterMs === 3_600_000)
  asked = 0
  await assert.rejects(new Varve({ url: await scripted(busy) }).request('POST', '/v1/x', { key: '' }))
  assert.equal(asked, 1)
})

test('a signal ends a request', async t => {
  const url = await serving(t, () => {})
  await assert.rejects(new Varve({ url }).session('s').context({}, AbortSignal.timeout(100)), { name: 'TimeoutError' })
})

test('results go up and come back', async () => {
  const session = varve.session(newID('results'), { format: 'openai-chat' })
  await session.create()
  const text = Buffer.from('a line of output\n'.repeat(600_000))
  const pieces = Array.from({ length: Math.ceil(text.length / 1_000_000) }, (_, n) => text.subarray(n * 1_000_000, (n + 1) * 1_000_000))
  const stored = []
  const done = await session.upload(pieces, { tool: 'Bash', call_id: 'c1', progress: bytes => stored.push(bytes) })
  assert.deepEqual([done.bytes, stored.at(-1), stored.length > 1], [text.length, text.length, true])
  assert.ok(text.equals(Buffer.concat(await all(await session.result(done.ref)))))
  const { read_result: read } = await session.functions()
  assert.match(await read({ ref: done.ref, limit: 3 }), /a line of output/)
  const answer = await session.call('read_result', { ref: done.ref, limit: 1 }, { call_id: 'c2' })
  assert.equal(answer.messages[0].tool_call_id, 'c2')
})

test('events are a stream', async () => {
  const session = varve.session(newID('events'), { format: 'openai-chat', window_tokens: 10_000 })
  await session.append(Array.from({ length: 6 }, (_, n) => turn(n)).flat())
  assert.equal((await session.compact(60)).state, 'done')
  for await (const event of varve.events({ after: 0, session: session.id })) {
    assert.equal(event.session, session.id)
    if (event.type === 'session.compacted') break
  }
  const stop = new AbortController()
  const next = varve.events({}, stop.signal).next()
  setTimeout(() => stop.abort(), 200)
  await assert.rejects(next, { name: 'AbortError' })
  await session.delete()
  await assert.rejects(session.read(), { status: 404 })
})
