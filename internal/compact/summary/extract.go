package summary

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// The limits of copied texts, in characters.
const (
	goalChars     = 600
	saidChars     = 240
	sentenceChars = 320
	stateChars    = 600
	subjectChars  = 160
	outcomeChars  = 160
	entryChars    = 1_000 // of a line of an earlier summary; more than Extract writes
)

// Extract returns a summary written without a model. Under headings it lists the user's goal and demands, decisions and
// findings, files and commands, errors, and what is open, each with the seq of its message and the ref that retrieves a
// result. It chooses sentences by their words (lexicon.go) and copies them. Previous, Retained and earlier summaries
// among the messages are merged into the same sections. The answer is deterministic, within MaxTokens, smaller than the
// messages, masked (resource.Mask), and without a tag that could close the section around it. It is empty if no summary
// would be shorter.
func Extract(r Request) Answer {
	d := draft{calls: map[string]call{}}
	d.adopt(r.Retained)
	d.adopt(r.Previous)
	for _, m := range r.Messages {
		if m.Summary {
			d.adopt(texts(m))
		} else {
			d.message(m)
		}
	}
	d.close()
	return d.answer(r)
}

// draft is a summary as it grows.
type draft struct {
	sections [sectionCount]notes
	calls    map[string]call // the newest of each id
	goal     string          // the first text of the user
	last     string          // the newest text of the agent
	lastSeq  int64
}

func (d *draft) message(m Message) {
	for _, p := range m.Parts {
		switch {
		case p.Kind == Call:
			d.call(m, p)
		case p.Kind == Result:
			d.result(m, p)
		case p.Kind != Text:
		case m.Role == "assistant" || m.Role == "model":
			d.agent(m.Seq, clean(p.Text))
		case m.Role == "system" || m.Role == "developer":
			d.demand(m.Seq, clean(p.Text))
		case m.Role != "tool":
			d.user(m.Seq, clean(p.Text))
		}
	}
}

// clean returns a text that is safe to copy into a summary.
func clean(text string) string { return resource.Mask(neutral(text)) }

// user records a message of the user: the first is the goal; of later ones demands and exact values are kept whole.
func (d *draft) user(seq int64, text string) {
	text = reminders.ReplaceAllString(text, "")
	whole := collapse(text)
	if whole == "" {
		return
	}
	if len(d.sections[goal].at)+len(d.sections[earlier].at) == 0 {
		d.goal = clip(whole, goalChars)
		d.sections[goal].put("", at(seq, d.goal))
	} else {
		d.sections[said].put(clip(whole, saidChars), at(seq, clip(whole, saidChars)))
	}
	d.demand(seq, text)
}

// demand records the demands in a text, and its exact values. Of a long text, probably pasted, only commands count.
func (d *draft) demand(seq int64, text string) {
	const longText, maxDemands = 2_000, 16
	isDemand := demanding
	if len(text) > longText {
		isDemand = commands.matches
	}
	var wanted []string
	for s := range sentences(text) {
		if s = clip(s, sentenceChars); s == d.goal {
			continue
		}
		if isDemand(s) {
			wanted = append(wanted, s)
		} else if exact(s) {
			d.fact(seq, s)
		}
	}
	for i, s := range wanted {
		if i < maxDemands/2 || i >= len(wanted)-maxDemands/2 {
			d.sections[demands].keep(s, at(seq, s))
		}
	}
}

// agent records a text of the agent.
func (d *draft) agent(seq int64, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	d.last, d.lastSeq = text, seq
	d.boxes(seq, text)
	for s := range sentences(text) {
		switch {
		case narrating(s):
		case results.matches(s):
			d.sections[findings].keep(clip(s, sentenceChars), at(seq, clip(s, sentenceChars)))
		case exact(s):
			d.fact(seq, s)
		}
	}
}

func (d *draft) fact(seq int64, sentence string) {
	sentence = clip(sentence, sentenceChars)
	d.sections[facts].keep(sentence, at(seq, sentence))
}

// close records the state at the end of the messages: the last text of the agent and its next steps.
func (d *draft) close() {
	if d.last == "" {
		return
	}
	d.sections[state].put("", at(d.lastSeq, clip(collapse(d.last), stateChars)))
	d.sections[open].dropAll("next: ")
	for s := range sentences(d.last) {
		if plans.matches(s) {
			d.open(d.lastSeq, "next", clip(s, sentenceChars))
		}
	}
}

// answer returns the sections cut to the limit of the request.
func (d *draft) answer(r Request) Answer {
	allowed := weight(r) - 1
	if r.MaxTokens > 0 {
		allowed = min(allowed, r.MaxTokens)
	}
	// All lines together may cost a little more than the sum of each alone.
	for limit := allowed; limit > 0; {
		a := d.within(limit, r.Retain)
		over := cost(a.Retain+"\n"+a.Summary) - allowed
		if over <= 0 {
			return a
		}
		limit -= over
	}
	return Answer{}
}

func (d *draft) within(limit int, retain bool) Answer {
	kept := fit(&d.sections, limit)
	a := Answer{Retain: write(kept, true), Summary: write(kept, false)}
	if !retain {
		a = Answer{Summary: strings.Trim(a.Retain+"\n"+a.Summary, "\n")}
	}
	return a
}

// at returns text with the seq of its message before it.
func at(seq int64, text string) string { return "[" + strconv.FormatInt(seq, 10) + "] " + text }

// withoutSeq returns an entry without the seq that at put before it.
func withoutSeq(entry string) string {
	number, text, ok := strings.Cut(strings.TrimPrefix(entry, "["), "] ")
	if !ok || !strings.HasPrefix(entry, "[") {
		return entry
	}
	if _, err := strconv.ParseInt(number, 10, 64); err != nil {
		return entry
	}
	return text
}

// reminders matches text that the harness, not the user, put into a message.
var reminders = regexp.MustCompile(`(?s)<system-reminder>.*?(?:</system-reminder>|\z)`)
