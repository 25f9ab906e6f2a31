// Keeps the sessions of a coding agent in Varve: a command hook of Claude Code and Codex (docs/coding-agents.md).
// opencode.mjs is the plugin for opencode.
//
//     node hook.mjs                                      # a hook's input on standard input
//     node hook.mjs SESSION grep_results '{"pattern":…}'  # reads back, for the agent's shell
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const { VARVE_URL = 'http://localhost:8080', VARVE_KEY } = process.env
const script = fileURLToPath(import.meta.url)
const most = 9000 // characters of summaries: an agent takes 10,000 from a hook

async function varve(method, path, body) {
  const headers = { Authorization: `Bearer ${VARVE_KEY}`, 'Content-Type': 'application/json' }
  const answer = await fetch(VARVE_URL + path, { method, headers, body })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}

const route = (session, rest) => `/v1/sessions/${encodeURIComponent(session)}/${rest}`

/** Sends a transcript; what Varve has of it is not stored twice. */
export const send = (session, transcript, cwd) =>
  varve('POST', `/v1/imports?${new URLSearchParams({ session, settings: JSON.stringify({ metadata: { cwd } }) })}`, transcript)

export const compact = session => varve('POST', route(session, 'compact?wait=30'))

/** Returns what an agent is told after a compaction. */
export async function recall(session) {
  const { summaries } = await varve('GET', route(session, 'summaries'))
  const texts = summaries.map(({ ref, text }) => `Messages ${ref.slice(1)}:\n${text}`).join('\n\n').slice(0, most)
  return `Varve has all of this session. ${texts}\n\nWhat was said and read before, run in a shell:
node ${script} ${session} search_session '{"query":"…"}'
or grep_results '{"pattern":"…"}', read_result '{"ref":"r…"}', get_messages '{"ref":"m…"}' in place of search_session.`
}

async function hook({ session_id: session, transcript_path: transcript, hook_event_name: event, source, cwd }) {
  if (event !== 'SessionStart') {
    await send(session, await readFile(transcript), cwd)
    if (event === 'PreCompact') await compact(session)
  } else if (source === 'compact') {
    console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext: await recall(session) } }))
  }
}

async function main([session, tool, args = '{}']) {
  if (tool) return console.log((await varve('POST', route(session, `tools/${tool}`), JSON.stringify({ arguments: args }))).text)
  let input = ''
  for await (const piece of process.stdin.setEncoding('utf8')) input += piece
  await hook(JSON.parse(input))
}

if (process.argv[1]?.endsWith('hook.mjs')) await main(process.argv.slice(2))
