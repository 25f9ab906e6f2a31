'use strict'
// Shows the sections that have all words of ?q=, those first that have them in their headings. index.js has the sections.

const most = 40

// occurrences returns where a word begins in a text, at most some places; whole words count twice.
const occurrences = (text, word) => {
  let count = 0
  for (let at = text.indexOf(word); at >= 0 && count < 6; at = text.indexOf(word, at + word.length)) {
    if (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) continue
    count += /[\p{L}\p{N}]/u.test(text[at + word.length] ?? '') ? 1 : 2
  }
  return count
}

// score returns how well a section fits, 0 if it lacks a word.
const score = (section, words) => {
  let sum = 0
  for (const word of words) {
    const inHeading = occurrences(section.heading.toLowerCase(), word)
    const inPage = occurrences(section.page.toLowerCase(), word)
    const inText = occurrences(section.text.toLowerCase(), word)
    if (inHeading + inPage + inText === 0) return 0
    sum += 10 * inHeading + 4 * inPage + inText
  }
  return section.link.startsWith('api.html') ? sum / 2 : sum // its operations repeat the words of their subject
}

const element = (name, text, ...children) => {
  const made = document.createElement(name)
  if (text) made.textContent = text
  made.append(...children)
  return made
}

// excerpt returns the text around the first of the words, with all of them marked.
const excerpt = (text, words) => {
  const first = Math.max(0, Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0)) - 80)
  const start = Number.isFinite(first) ? first : 0
  const part = (start > 0 ? '… ' : '') + text.slice(start, start + 240) + (text.length > start + 240 ? ' …' : '')
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`, 'iu')
  return element('p', '', ...part.split(pattern).map((piece, i) => (i % 2 ? element('mark', piece) : piece)))
}

const query = (new URLSearchParams(location.search).get('q') ?? '').trim()
const words = query.toLowerCase().split(/[\s`"']+/).filter(Boolean)
document.querySelector('input[name=q]').value = query
const found = words.length === 0 ? [] : sections.map((section) => ({ section, score: score(section, words) }))
  .filter((one) => one.score > 0).sort((a, b) => b.score - a.score)
const say = words.length === 0 ? 'What do you look for?'
  : found.length > most ? `The best ${most} of ${found.length} sections` : `${found.length} ${found.length === 1 ? 'section' : 'sections'}`
document.querySelector('#found').append(element('p', say), ...found.slice(0, most).map(({ section }) => {
  const link = element('a', section.heading)
  link.href = section.link
  const of = element('span', section.heading === section.page ? '' : ` · ${section.page}`)
  return element('article', '', element('h2', '', link, of), excerpt(section.text, words))
}))
