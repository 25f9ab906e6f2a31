// Takes turns between calls of the client and the same requests without it; bench/clients.go runs it.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Varve } from '../../clients/typescript/dist/index.js'

const given = JSON.parse(readFileSync(0, 'utf8'))
const { settings, messages, turn } = given, { VARVE_URL, VARVE_KEY } = process.env
const varve = new Varve(), session = varve.session(given.session), path = `/v1/sessions/${given.session}`
const fresh = () => `${given.session}-${randomUUID()}`

async function bare(method, path, body) {
  const headers = { Authorization: `Bearer ${VARVE_KEY}` }
  if (body) Object.assign(headers, { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() })
  return (await fetch(VARVE_URL + path, { method, headers, body: body && JSON.stringify(body) })).json()
}

async function all(iterable) {
  const got = []
  for await (const one of iterable) got.push(one)
  return got
}

const works = {
  context: [() => session.context(), () => bare('GET', `${path}/context`)],
  list: [() => all(session.messages({ limit: 1000 })), () => bare('GET', `${path}/messages?limit=1000`)],
  append: [
    () => varve.session(fresh(), settings).append(messages),
    () => bare('POST', `/v1/sessions/${fresh()}/messages`, { messages, session: settings })],
  step: [() => session.step(turn), () => bare('POST', `${path}/messages?fit=window&return=context`, { messages: turn })],
}
const took = {}
for (const [name, sides] of Object.entries(works)) {
  took[name] = [[], []]
  for (let call = 0; call < given.calls; call++) {
    for (const [side, take] of sides.entries()) {
      const began = process.cpuUsage()
      await take()
      const { user, system } = process.cpuUsage(began)
      took[name][side].push((user + system) / 1000)
    }
  }
}
console.log(JSON.stringify(took))
