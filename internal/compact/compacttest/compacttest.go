// Package compacttest makes conversations for tests and benchmarks: plausible ones of coding agents, and wild ones with
// everything that agents and their platforms get wrong.
//
// Start at Session: the same generator state gives the same conversation. Recorded reads real ones from a folder.
package compacttest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/varve-dev/varve/internal/session"
)

// Options decides what kind of conversation to make.
type Options struct {
	Messages     int  // at least; the last calls get their results
	ResultTokens int  // of the median result; 0: 120, as in real coding sessions
	Wild         bool // orphans, abandoned calls, late answers, repeated ids, unusual contents
	Steps        int  // AI SDK: how many steps a message may have; 0: 1
}

// Session returns the messages of one conversation. One of Anthropic or Gemini has no system message: these formats
// have it outside the messages.
func Session(rng *rand.Rand, f session.Format, o Options) [][]byte {
	if o.ResultTokens == 0 {
		o.ResultTokens = 120
	}
	g := &generator{rng: rng, format: f, options: o}
	if f != session.Anthropic && f != session.Gemini && !g.wild(3) {
		g.say("system", "You are a careful engineer. Use the tools that you are given.")
	}
	if !g.wild(5) {
		g.say("user", "Find out why the build is red, and mend it.")
	}
	for len(g.messages) < o.Messages {
		g.round()
	}
	g.flush()
	return g.messages
}

type generator struct {
	rng      *rand.Rand
	format   session.Format
	options  Options
	messages [][]byte
	waiting  []call   // calls that may still be answered
	pending  []call   // of an AI SDK message that is not written yet
	steps    []string // of that message
	calls    int
}

type call struct {
	id, tool, arguments string
	bare                bool // it was sent without its id
}

// wild reports true once in n times, and only if the conversation is wild.
func (g *generator) wild(n int) bool { return g.options.Wild && g.rng.IntN(n) == 0 }

func (g *generator) pick(words []string) string { return words[g.rng.IntN(len(words))] }

// round adds an assistant's turn with its calls and their results.
func (g *generator) round() {
	if g.rng.IntN(12) == 0 {
		g.say("user", "And now the next one, please.")
	}
	if g.wild(30) {
		g.aside()
	}
	if g.rng.IntN(10) == 0 {
		g.say("assistant", "That is done.")
		if g.format == session.Gemini && !g.options.Wild { // which accepts calls only directly after the user
			g.say("user", "Good.")
		}
		return
	}
	if g.wild(25) {
		g.orphan()
	}
	calls := g.assistant(1 + g.rng.IntN(3))
	if g.wild(8) {
		g.say("user", "Wait, one more thing.")
	}
	if g.wild(6) {
		g.rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	}
	if g.wild(10) {
		g.waiting = append(g.waiting, calls[len(calls)-1])
		calls = calls[:len(calls)-1]
	}
	if g.wild(15) && len(g.waiting) > 0 {
		calls = append(calls, g.waiting[0])
		g.waiting = g.waiting[1:]
	}
	g.answer(calls)
}

// aside adds a message that agents rarely send.
func (g *generator) aside() {
	switch g.rng.IntN(3) {
	case 0:
		g.say("system", "Remember to be careful.")
	case 1:
		g.shows()
	default:
		g.say("assistant", "")
	}
}

// orphan answers a call that does not exist.
func (g *generator) orphan() {
	g.answer([]call{{id: fmt.Sprintf("call_none%d", g.rng.IntN(3)), tool: "Read"}})
}

// The last of the tools has a name that only wild agents send.
var tools = []string{
	"Read", "Grep", "Bash", "WebFetch", "SubAgent", "Edit", "Write", "read_file", "look \"up\"\u0007 wörter",
}

func (g *generator) newCall() call {
	g.calls++
	id := fmt.Sprintf("call_%06d", g.calls)
	if g.wild(5) {
		id = fmt.Sprintf("call_%d", g.rng.IntN(4))
	}
	known := tools
	if !g.options.Wild {
		known = tools[:len(tools)-1]
	}
	return call{id: id, tool: g.pick(known)}
}

// arguments returns one of a few arguments, so that calls repeat, in any order. Tools that write have the content, too.
func (g *generator) arguments(tool string) string {
	path := fmt.Sprintf(`"path":"internal/app/file%d.go"`, g.rng.IntN(3+g.calls/4))
	if g.wild(12) {
		path = fmt.Sprintf(`"file_path":"/srv/shop/internal/app/file%d.go"`, g.rng.IntN(3))
	}
	if tool == "Edit" || tool == "Write" {
		return "{" + path + `,"content":` + g.text(g.size()/2) + "}"
	}
	if g.wild(15) {
		return g.pick([]string{
			"{}", `{"paths":["internal/app/file0.go","internal/app/file1.go"]}`, `{"_omitted":{}}`, `{"path":""}`,
		})
	}
	switch g.rng.IntN(3) {
	case 0:
		return "{" + path + "}"
	case 1:
		return "{" + path + `,"limit":100}`
	}
	return `{ "limit": 100, ` + path + "}"
}

// size returns a log-normal size, as measured on real sessions: a quarter of the results has nearly all the tokens.
func (g *generator) size() int {
	tokens := float64(g.options.ResultTokens) * math.Exp(1.7*g.rng.NormFloat64())
	return int(min(tokens, 200*float64(g.options.ResultTokens))) * 4
}
