package summary

import (
	"cmp"
	"slices"
	"strings"
)

// written records a text of a message of the user: what the user said in it, or the summary that it is.
func (d *draft) written(seq int64, text string) {
	said := Said(text)
	switch {
	case said == "" && isSummary(text):
		d.adopt(clean(text), seq)
	case said == "" && begins(harness.rules, text):
		d.demand(seq, clean(text))
	case said == "" || d.commandAt > 0 && d.commandAt == seq-1 && expands(said):
	default:
		d.user(seq, clean(said))
	}
	if said != "" && strings.Contains(text, "<command-name>") {
		d.commandAt = seq
	}
}

// expands reports whether a text after a command of the harness is the text that the command stands for.
func expands(text string) bool {
	const long = 400
	return len(text) > long || strings.HasPrefix(text, "Invoke the ")
}

// isSummary reports whether a text is a summary of the conversation before.
func isSummary(text string) bool {
	return begins(harness.summaries, text)
}

// begins reports whether a text begins with one of the beginnings.
func begins(beginnings []string, text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(text, b) })
}

// user records what the user said: it is the task now, unless it asks for nothing new. If the user's words are not kept
// elsewhere, it is recorded word for word, too, and its demands and exact values.
func (d *draft) user(seq int64, text string) {
	line := collapse(text)
	if line == "" {
		return
	}
	if !d.wordsKept {
		d.quote(seq, line)
		d.demand(seq, text)
	}
	switch {
	case strings.HasPrefix(line, "$ "): // a command that the user ran, and its output
	case nodding(line):
		d.follow(seq, line)
	default:
		d.begin(seq, line)
	}
}

// quote records a message of the user unless it asks for nothing new: the first one is the goal.
func (d *draft) quote(seq int64, line string) {
	if len(d.sections[goal].at)+len(d.sections[earlier].at)+len(d.known[goal].at)+len(d.known[earlier].at) == 0 {
		d.goal = clip(line, goalChars)
		d.sections[goal].put(note{key: d.goal, seq: seq, text: d.goal})
		return
	}
	if nodding(line) {
		return
	}
	line = clip(line, saidChars)
	d.sections[said].put(note{key: line, seq: seq, text: line})
}

// begin records a demand as the task now. The task before has ended if the agent worked on it.
func (d *draft) begin(seq int64, line string) {
	if d.worked {
		d.forget()
		d.end()
	}
	d.worked = false
	d.sections[next] = notes{}
	chars := taskChars
	if !d.wordsKept {
		chars = shortTaskChars // the goal and the messages have more of it
	}
	line = clip(line, chars)
	d.sections[task].put(note{key: line, seq: seq, text: line})
}

// forget moves the errors to the past that are older than the task that ends.
func (d *draft) forget() {
	tasks := d.sections[task].all()
	if len(tasks) == 0 || len(d.sections[failures].at) == 0 {
		return
	}
	for _, e := range d.sections[failures].all() {
		if e.seq < tasks[0].seq {
			d.pass(e, "")
		}
	}
}

// pass moves an error to the past, with what became of it.
func (d *draft) pass(e note, fate string) {
	d.sections[failures].drop(e.key)
	e.text += fate
	d.sections[solved].put(e)
}

// follow records that the user said yes, or go on.
func (d *draft) follow(seq int64, line string) {
	if len(d.sections[task].at) > 0 {
		d.sections[task].put(note{key: then, seq: seq, text: then + line})
	}
}

// then begins the entry for the user's newest word about a task.
const then = "then: "

// end moves the task now to the tasks before, with how it ended.
func (d *draft) end() {
	outcomeOfAll := ""
	for _, e := range d.sections[task].all() {
		if e.key == then {
			continue
		}
		if closing := d.closing(); closing != "" && d.lastSeq > e.seq {
			outcomeOfAll = outcome + closing
		}
		e.text = clip(e.text, endedChars) + outcomeOfAll
		e.key = e.text
		d.sections[before].put(e)
	}
	d.sections[task] = notes{}
}

// say makes a text the newest of the agent.
func (d *draft) say(seq int64, text string) {
	d.last, d.lastSeq = text, seq
	d.ending = ending{}
}

// ending is what a text of the agent says about how a task ended.
type ending struct {
	first, best string
	worth       int // of the best sentence
}

// closes notes a statement of the agent's newest text as its ending if it is better than those before.
func (d *draft) closes(s statement) {
	const reports = 3 // how much more a sentence is worth here that reports a result
	if s.signs&(routine|results) != 0 {
		s.worth += reports
	}
	if s.worth > d.ending.worth {
		d.ending.best, d.ending.worth = s.text, s.worth
	}
	if d.ending.first == "" {
		d.ending.first = s.text
	}
}

// closing returns the sentence of the agent's newest text that says best how a task ended, "" if none does.
func (d *draft) closing() string { return clip(cmp.Or(d.ending.best, d.ending.first), outcomeChars) }

// demand records the demands in a text, and its statements with exact values. Of a long text, probably pasted, only
// commands count.
func (d *draft) demand(seq int64, text string) {
	const longText = 2_000
	maxDemands := 16
	if d.wordsKept {
		maxDemands = 8 // of a system message, or of the rules
	}
	var wanted []note
	for _, e := range d.reader.demandsIn(text) {
		if e.seq = seq; e.text == d.goal {
			continue
		}
		switch {
		case e.worth >= commanded, e.worth >= wished && len(text) <= longText:
			wanted = append(wanted, e)
		case !d.wordsKept:
			d.sections[demands].keep(e)
		}
	}
	for i, e := range wanted {
		if i < maxDemands/2 || i >= len(wanted)-maxDemands/2 {
			d.sections[demands].keep(e)
		}
	}
}

// close records the state at the end of the messages: the last text of the agent, and its next steps.
func (d *draft) close() {
	if !d.spoke {
		return
	}
	d.sections[state] = notes{}
	d.sections[state].put(note{seq: d.lastSeq, text: clip(collapse(plain(d.last)), stateChars)})
	if d.worked {
		d.sections[next] = notes{}
		d.steps()
	}
}

// steps records what the agent's last text says that it does next, or asks.
func (d *draft) steps() {
	const listed = 4 // of the entries of a list of next steps
	doing, asked := "", ""
	rest := 0
	for s := range sentences(d.last) {
		planned := signsOf(s)&plans != 0
		switch {
		case strings.HasSuffix(s, "?"):
			asked = s
		case planned && len(strings.Fields(s)) <= listed, planned && strings.HasSuffix(s, ":"):
			rest = listed
		case announcing.begins(s) && len(strings.Fields(s)) > 2:
			doing, rest = s, 0
		case planned || rest > 0:
			d.step("", s)
			rest--
		}
	}
	if doing != "" {
		d.step("doing: ", doing)
	}
	if asked != "" {
		d.step("asked the user: ", asked)
	}
}

// step records a next step.
func (d *draft) step(kind, sentence string) {
	text := kind + clip(sentence, saidChars)
	d.sections[next].put(note{key: text, seq: d.lastSeq, text: text})
}
