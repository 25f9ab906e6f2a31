// Keeps the sessions of a coding agent in Varve: a command hook of Claude Code and Codex (docs/coding-agents.md).
//
//     node hook.mjs                                      # a hook's input on standard input
//     node hook.mjs SESSION grep_results '{"pattern":…}'  # reads back, for the agent's shell
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const { VARVE_URL = 'http://localhost:8080', VARVE_KEY } = process.env
const most = 9000 // characters of summaries: an agent takes 10,000 from a hook

async function varve(method, path, body) {
  const headers = { Authorization: `Bearer ${VARVE_KEY}`, 'Content-Type': 'application/json' }
  const answer = await fetch(VARVE_URL + path, { method, headers, body })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}

const route = (session, rest) => `/v1/sessions/${encodeURIComponent(session)}/${rest}`

async function hook({ session_id: session, transcript_path: transcript, hook_event_name: event, source, cwd }) {
  if (event !== 'SessionStart') {
    const query = new URLSearchParams({ session, settings: JSON.stringify({ metadata: { cwd } }) })
    await varve('POST', `/v1/imports?${query}`, await readFile(transcript))
    if (event === 'PreCompact') await varve('POST', route(session, 'compact?wait=30'))
  } else if (source === 'compact') {
    const { summaries } = await varve('GET', route(session, 'summaries'))
    const texts = summaries.map(({ ref, text }) => `Messages ${ref.slice(1)}:\n${text}`).join('\n\n').slice(0, most)
    const additionalContext = `Varve has all of this session. ${texts}\n\nWhat was said and read before, run in a shell:
node ${fileURLToPath(import.meta.url)} ${session} search_session '{"query":"…"}'
or grep_results '{"pattern":"…"}', read_result '{"ref":"r…"}', get_messages '{"ref":"m…"}' in place of search_session.`
    console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext } }))
  }
}

const [session, tool, args = '{}'] = process.argv.slice(2)
if (tool) {
  console.log((await varve('POST', route(session, `tools/${tool}`), JSON.stringify({ arguments: args }))).text)
} else {
  let input = ''
  for await (const piece of process.stdin.setEncoding('utf8')) input += piece
  await hook(JSON.parse(input))
}
