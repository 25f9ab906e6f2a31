// What pages have beside what they do without it: buttons that copy, and keys that move.

for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = false
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(button.dataset.copy)
    button.textContent = 'Copied'
    setTimeout(() => { button.textContent = 'Copy' }, 1500)
  })
}

// n and p go to the next and the previous change, j and k to the next and the previous message, / to the search.
const moves = { n: ['.row.changed', 1], p: ['.row.changed', -1], j: ['article.row', 1], k: ['article.row', -1] }

function move(selector, step) {
  const rows = [...document.querySelectorAll(selector)]
  const edge = 60 // below the heads of the columns
  const tops = rows.map(row => Math.round(row.getBoundingClientRect().top) - edge)
  const at = step > 0 ? tops.findIndex(top => top > 1) : tops.findLastIndex(top => top < -1)
  if (at >= 0) scrollBy({ top: tops[at] })
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea')) return
  if (event.key === '/') {
    const field = document.querySelector('[data-focus]')
    if (field) {
      event.preventDefault()
      field.focus()
    }
  } else if (moves[event.key]) {
    move(...moves[event.key])
  }
})

// What happens meanwhile: a page about a session says so, and the figures of a recompaction follow it. The stream is
// open while the page is looked at, because a browser has few connections to a host.
const live = document.querySelector('[data-live]')
const types = ['session.due', 'session.compacted', 'session.failed', 'session.quarantined', 'session.archived',
  'session.restored', 'recompaction.started', 'recompaction.progress', 'recompaction.ended']
let stream

async function changed() {
  if (!live.id) {
    live.hidden = false
    return
  }
  const answer = await fetch(location.href)
  if (answer.redirected) return location.reload() // the sign-in is over
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  document.getElementById(live.id)?.replaceChildren(...(page.getElementById(live.id)?.childNodes ?? []))
}

function follow() {
  stream?.close()
  if (document.hidden) return
  const of = live.dataset.live ? '?' + new URLSearchParams({ session: live.dataset.live }) : ''
  stream = new EventSource('/console/events' + of)
  for (const type of types) stream.addEventListener(type, changed)
}

if (live) {
  document.addEventListener('visibilitychange', follow)
  follow()
}
