package readback

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// passage is a place of a piece where words are near one another.
type passage struct {
	piece     // without its text
	line      int64
	char      int64 // of the line, if the passage is far inside
	here      uint32
	whole     uint32 // the words that are words there, not parts of longer ones
	elsewhere uint32 // words that are in the piece but not here
	exact     bool   // the query as it was written
	snippet   string
	score     float64
}

// The bounds of passages.
const (
	passageBytes = 400  // from the first word to the last
	perPiece     = 3    // passages of one piece
	maxPassages  = 4000 // that are kept
	snippetBytes = 600
	snippetLead  = 160 // bytes of the snippet before the first word
	deepInLine   = 400 // characters of a line before a place to be read from there
)

// window is a run of occurrences.
type window struct {
	first, last int // of the occurrences
	here, whole uint32
}

// passages returns the best passages of a piece, whose words are at found.
func (q *query) passages(p *piece, folded []byte, found []occurrence) (list []passage) {
	slices.SortFunc(found, func(a, b occurrence) int { return cmp.Compare(a.at, b.at) })
	all := uint32(0)
	for i := range found {
		all |= 1 << found[i].word
	}
	taken := make([]bool, len(found))
	for range perPiece {
		w, ok := best(found, taken)
		if !ok {
			break
		}
		for i := w.first; i <= w.last; i++ {
			taken[i] = true
		}
		list = append(list, q.passage(p, folded, found, w, all))
	}
	return list
}

// best returns the window with the most words, and of these with the most that are whole words.
func best(found []occurrence, taken []bool) (top window, ok bool) {
	var c tally
	last := -1
	for first := range found {
		if last < first {
			c, last = tally{}, first-1
		}
		for last+1 < len(found) && !taken[last+1] &&
			(last < first || found[last+1].end-found[first].at <= passageBytes) {
			last++
			c.add(&found[last], 1)
		}
		if taken[first] || last < first {
			continue
		}
		if w := (window{first, last, c.here, c.whole}); !ok || w.value() > top.value() {
			top, ok = w, true
		}
		c.add(&found[first], -1)
	}
	return top, ok
}

// tally counts the words of a window that moves.
type tally struct {
	words, wholes [maxWords]int
	here, whole   uint32
}

func (c *tally) add(o *occurrence, n int) {
	bit := uint32(1) << o.word
	if c.words[o.word] += n; c.words[o.word] > 0 {
		c.here |= bit
	} else {
		c.here &^= bit
	}
	if !o.isWord {
		return
	}
	if c.wholes[o.word] += n; c.wholes[o.word] > 0 {
		c.whole |= bit
	} else {
		c.whole &^= bit
	}
}

func (w window) value() int { return 64*bits.OnesCount32(w.here) + bits.OnesCount32(w.whole) }

func (q *query) passage(p *piece, folded []byte, found []occurrence, w window, all uint32) passage {
	from := found[w.first].at
	to := found[w.last].end
	lineAt := bytes.LastIndexByte(p.text[:from], '\n') + 1
	made := passage{
		piece: *p, line: p.line + int64(bytes.Count(p.text[:lineAt], []byte{'\n'})),
		here: w.here, whole: w.whole, elsewhere: all &^ w.here, snippet: snippet(p.text, from, to),
	}
	made.text = nil
	if chars := charsOf(p.text[lineAt:from]); chars > deepInLine {
		made.char = chars - deepInLine/2
	}
	around := folded[max(from-len(q.whole), 0):min(to+len(q.whole), len(folded))]
	made.exact = q.whole != nil && bytes.Contains(around, q.whole)
	return made
}

// snippet returns the text around a passage: what follows it is more likely to answer than what precedes it.
func snippet(text []byte, from, to int) string {
	begin := max(from-snippetLead, 0)
	if feed := bytes.IndexByte(text[begin:from], '\n'); feed >= 0 && begin > 0 {
		begin += feed + 1 // whole lines
	}
	for begin > 0 && continues(text[begin]) {
		begin++
	}
	piece := wholeChars(text[begin:], max(snippetBytes, to-begin))
	end := begin + len(piece)
	if feed := bytes.LastIndexByte(piece, '\n'); end < len(text) && begin+feed >= to {
		end = begin + feed
	}
	shown := string(bytes.TrimRight(text[begin:end], "\n"))
	if begin > 0 && text[begin-1] != '\n' {
		shown = "…" + shown
	}
	if end < len(text) && text[end] != '\n' {
		shown += "…"
	}
	return shown
}

// counts is how many of the pieces that were searched have each word.
type counts struct {
	pieces int
	with   []int
}

// rarity returns what a word is worth: more, the fewer pieces have it.
func (c *counts) rarity(word int) float64 {
	return math.Log(1 + float64(c.pieces)/float64(max(c.with[word], 1)))
}

// The parts of a score, beside the rarities of the words that a passage has.
const (
	insideWord = 0.6 // of a word that is only a part of a longer one
	inPiece    = 0.3 // of a word that is elsewhere in the same text
	allWords   = 0.5 // on top for a passage with all words
	asWritten  = 0.5 // on top for the query as it was written
)

// rank sorts passages by their scores, and leaves out all but the newest of those with the same text.
func rank(list []passage, c *counts) []passage {
	every := uint32(1)<<len(c.with) - 1
	for i := range list {
		p := &list[i]
		for w := range c.with {
			bit := uint32(1) << w
			switch {
			case p.whole&bit != 0:
				p.score += c.rarity(w)
			case p.here&bit != 0:
				p.score += c.rarity(w) * insideWord
			case p.elsewhere&bit != 0:
				p.score += c.rarity(w) * inPiece
			}
		}
		base := p.score
		if p.here == every {
			p.score += base * allWords
		}
		if p.exact {
			p.score += base * asWritten
		}
	}
	slices.SortStableFunc(list, func(a, b passage) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seq, a.seq), cmp.Compare(a.part, b.part),
			cmp.Compare(a.line, b.line))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(p passage) bool {
		known := seen[p.snippet]
		seen[p.snippet] = true
		return known
	})
}

// prune keeps those passages that have the most words.
func prune(list []passage) []passage {
	if len(list) < maxPassages {
		return list
	}
	slices.SortStableFunc(list, func(a, b passage) int {
		return cmp.Or(cmp.Compare(bits.OnesCount32(b.here), bits.OnesCount32(a.here)),
			cmp.Compare(bits.OnesCount32(b.whole), bits.OnesCount32(a.whole)), cmp.Compare(b.seq, a.seq))
	})
	return list[:maxPassages/2]
}
