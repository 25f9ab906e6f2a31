package summary

import (
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// The limits of copied texts, in characters.
const (
	goalChars = 600
	saidChars = 240
	taskChars = 320

	shortTaskChars = 160

	endedChars    = 120 // of the demand of a task that ended
	sentenceChars = 320
	stateChars    = 400
	subjectChars  = 160
	outcomeChars  = 200
	entryChars    = 1_000 // of a line of an earlier summary; more than Extract writes
)

// Extract returns a summary written without a model. Under headings it lists the state: the task now, the plan, files
// written and not committed, open errors, and what is next. Then it has the decisions and findings of the agent, the
// tasks before with how each ended, and the outcomes of calls, each with the seq of its message and the ref that
// retrieves a result. The user's goal, demands and messages and the files read are only there if WordsKept is false.
//
// Extract chooses sentences by their words (lexicon.go, worth.go) and copies them; what a harness wrote is not copied
// (harness.txt). Previous, Retained and earlier summaries among the messages are merged into the same sections. A line,
// once written, does not change while what it says holds, and leaves only for want of room or because it no longer
// holds; the goal and the task now are cut instead. If Retain is asked for, it has what lasts (goal, demands, decisions
// and findings, tasks that ended), and Summary what is about the present. What lasts and stands in Earlier is not
// repeated. The answer is deterministic, within MaxTokens, smaller than the messages, masked (resource.Mask), and
// without a tag that could close the section around it. It is empty if no summary would be shorter.
func Extract(r Request) Answer { return new(Reader).Extract(r) }

// Extract does what the function does.
func (reader *Reader) Extract(r Request) Answer {
	d := draft{reader: reader, calls: map[string]call{}, wordsKept: r.WordsKept, known: known(r)}
	d.adopt(r.Retained, 0)
	d.adopt(r.Previous, 0)
	d.resume()
	for _, m := range r.Messages {
		if m.Summary {
			d.adopt(texts(m), 0)
			d.resume()
		} else {
			d.message(m)
		}
	}
	d.close()
	d.forgetKnown()
	return d.answer(r)
}

// draft is a summary as it grows.
type draft struct {
	reader    *Reader
	wordsKept bool
	sections  [sectionCount]notes
	known     [sectionCount]notes // what stands in summaries that stay in the view
	calls     map[string]call     // the newest of each id
	goal      string              // the first text of the user
	last      string              // the newest text of the agent
	lastSeq   int64
	ending    ending // of that text
	spoke     bool   // the agent said something in these messages
	worked    bool   // the agent said or did something since the newest demand
	commandAt int64  // seq of the newest message that is a command of the harness
	newest    int64  // seq of the newest message
}

func (d *draft) message(m Message) {
	d.newest = max(d.newest, m.Seq)
	for _, p := range m.Parts {
		switch {
		case p.Kind == Call:
			d.call(m, p)
		case p.Kind == Result:
			d.result(m, p)
		case p.Kind != Text:
		case m.Role == "assistant" || m.Role == "model":
			d.agent(m.Seq, d.reader.spokenIn(p.Text))
		case m.Role == "system" || m.Role == "developer":
			d.demand(m.Seq, clean(p.Text))
		case m.Role == "user" || m.Role == "human":
			d.written(m.Seq, p.Text)
		}
	}
}

// clean returns a text that is safe to copy into a summary.
func clean(text string) string { return resource.Mask(Harmless(text)) }

// agent records a text of the agent: its check boxes, its findings, and how it closes.
func (d *draft) agent(seq int64, said spoken) {
	if strings.TrimSpace(said.text) == "" {
		return
	}
	d.say(seq, said.text)
	d.spoke, d.worked = true, true
	d.boxes(seq, said.text)
	for _, s := range said.statements {
		d.closes(s)
		if s.worth >= worthKeeping {
			s.text = clip(s.text, sentenceChars)
			d.sections[findings].keep(note{key: s.text, seq: seq, text: s.text, worth: s.worth})
		}
	}
}

// statement is a sentence of the agent that does not only announce something or ask.
type statement struct {
	text  string
	worth int
	signs signs
}

// statements yields the statements of a text. A beginning such as "The cause is:" and the sentence after it are one.
func statements(text string) iter.Seq[statement] {
	return func(yield func(statement) bool) {
		open := ""
		for s := range sentences(plain(text)) {
			if narrating(s) || strings.HasSuffix(s, "?") || isOwn(s) {
				continue
			}
			if strings.HasSuffix(s, ":") {
				open = s + " "
				continue
			}
			s, open = open+s, ""
			found := signsOf(s)
			if !yield(statement{s, weigh(s, found), found}) {
				return
			}
		}
	}
}

// plain returns a text without Markdown's marks of strong words, which say nothing to a model.
func plain(text string) string { return strings.ReplaceAll(text, "**", "") }

// answer returns the sections cut to the limit of the request.
func (d *draft) answer(r Request) Answer {
	enough := math.MaxInt
	if r.MaxTokens > 0 {
		enough = r.MaxTokens + 1
	}
	allowed := min(weight(r, enough), enough) - 1
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
	kept := fit(&d.sections, limit, d.newest)
	if !retain {
		return Answer{Summary: kept.write(func(section) bool { return true })}
	}
	return Answer{
		Retain:  kept.write(func(s section) bool { return layout[s].retained }),
		Summary: kept.write(func(s section) bool { return !layout[s].retained }),
	}
}

// at returns text with the seq of its message before it.
func at(seq int64, text string) string { return "[" + strconv.FormatInt(seq, 10) + "] " + text }

// parted returns the seq that at put before an entry, 0 for none, and the entry without it.
func parted(entry string) (seq int64, text string) {
	number, text, ok := strings.Cut(strings.TrimPrefix(entry, "["), "] ")
	if !ok || !strings.HasPrefix(entry, "[") {
		return 0, entry
	}
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq <= 0 {
		return 0, entry
	}
	return seq, text
}
