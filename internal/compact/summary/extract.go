package summary

import (
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// How much of a text is copied, in characters.
const (
	goalChars     = 600
	saidChars     = 240
	sentenceChars = 320
	stateChars    = 600
	subjectChars  = 160
	outcomeChars  = 160
	entryChars    = 1_000 // of a line of an earlier summary; more than any of our own
)

// Extract writes a summary without a model: under headings, what the user wants and demands, what was decided and
// found, the files and commands, the errors and what is open, each with the seq of its message and the ref that brings
// a result back. Sentences are chosen by words that tell (lexicon.go) and copied, never reworded. What Previous,
// Retained and earlier summaries among the messages say is taken up into the same sections. The answer is deterministic, within
// MaxTokens, smaller than what it stands for, masked (resource.Mask), and holds no tag that could close its wrapper. It is
// empty where there is nothing to say in fewer words.
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
	calls    map[string]call // by id, the newest
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

// clean returns a text that may be copied into a summary.
func clean(text string) string { return resource.Mask(neutral(text)) }

// user takes up what the user says: the first message is the goal, each is kept shortened, and demands and exact values
// whole.
func (d *draft) user(seq int64, text string) {
	text = withoutReminders(text)
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

// demand takes up what a text demands, and the exact values in it. What is long was pasted rather than written: of it
// only plain demands count, and not many.
func (d *draft) demand(seq int64, text string) {
	const long, most = 2_000, 16
	demand := demanding
	if len(text) > long {
		demand = commanding
	}
	var wanted []string
	for s := range sentences(text) {
		if s = clip(s, sentenceChars); s == d.goal {
			continue
		}
		if demand(s) {
			wanted = append(wanted, s)
		} else if exact(s) {
			d.fact(seq, s)
		}
	}
	if len(wanted) > most {
		wanted = append(wanted[:most/2:most/2], wanted[len(wanted)-most/2:]...)
	}
	for _, s := range wanted {
		d.sections[demands].keep(s, at(seq, s))
	}
}

// agent takes up what the agent says.
func (d *draft) agent(seq int64, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	d.last, d.lastSeq = text, seq
	d.boxes(seq, text)
	for s := range sentences(text) {
		switch {
		case narrating(s):
		case telling(s):
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

// close writes down the state that the messages end in: what the agent said last and means to do next.
func (d *draft) close() {
	if d.last == "" {
		return
	}
	d.sections[state].put("", at(d.lastSeq, clip(collapse(d.last), stateChars)))
	d.sections[open].dropAll("next: ")
	for s := range sentences(d.last) {
		if planning(s) {
			d.open(d.lastSeq, "next", clip(s, sentenceChars))
		}
	}
}

// answer fits the sections into what the request allows.
func (d *draft) answer(r Request) Answer {
	allowed := weight(r) - 1
	if r.MaxTokens > 0 {
		allowed = min(allowed, r.MaxTokens)
	}
	// A whole may cost a little more than its lines do one by one.
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

// at puts the seq of a message before what it says.
func at(seq int64, text string) string { return "[" + strconv.FormatInt(seq, 10) + "] " + text }

// withoutSeq removes what at puts before a text.
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

// withoutReminders drops what a harness, not the user, has put into a message.
func withoutReminders(text string) string {
	const opening, closing = "<system-reminder>", "</system-reminder>"
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, opening)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, closing)
	}
}
