package summary

import "strings"

// adopt adds an earlier summary. The lines under the headings of Extract go to the same sections. Those of a foreign
// summary go to the sections that its headings mean, and else to the section for earlier summaries; seq is that of its
// message, 0 if it has none.
func (d *draft) adopt(previous string, seq int64) {
	a := adopter{draft: d, seq: seq, section: earlier}
	for line := range strings.Lines(clean(afterAnalysis(previous))) {
		a.line(strings.TrimSpace(line))
	}
}

// known returns the sections of the summaries that stay in the view.
func known(r Request) [sectionCount]notes {
	d := draft{wordsKept: r.WordsKept}
	for _, text := range r.Earlier {
		d.adopt(text, 0)
	}
	return d.sections
}

// forgetKnown removes what lasts and stands in a summary that stays in the view.
func (d *draft) forgetKnown() {
	for s := range layout {
		if !layout[s].retained {
			continue
		}
		for key := range d.known[s].at {
			d.sections[s].drop(key)
		}
	}
}

// adopter reads an earlier summary line by line.
type adopter struct {
	*draft
	seq     int64
	section section // of the heading above
	foreign bool    // that heading is not one of Extract's
	ignored bool    // the heading is that of a part that stands elsewhere
	base    string  // the directory in the heading of a section of files
	fenced  bool    // the line is in a block of code
}

func (a *adopter) line(line string) {
	if strings.HasPrefix(line, "```") {
		a.fenced = !a.fenced
	}
	if a.fenced || strings.HasPrefix(line, "```") {
		return
	}
	if own, ok := headings[line]; ok {
		a.section, a.base = own, ""
		a.foreign, a.ignored = false, false
		return
	}
	if heading, base, ok := strings.Cut(line, inDirectory); ok && headings[heading].ofFiles() {
		a.section, a.base = headings[heading], base
		a.foreign, a.ignored = false, false
		return
	}
	if meant, ok := headingMeans(line); ok && (a.foreign || a.section == earlier) {
		a.section, a.foreign = meant, true
		a.ignored = a.wordsKept && (meant == said || meant == goal)
		return
	}
	wrapping := strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") // the policy's words around a summary
	text := strings.TrimPrefix(line, "- ")
	if a.foreign {
		text = bare(line)
	}
	if text == "" || a.ignored || a.section == earlier && (wrapping || isSummary(line)) {
		return
	}
	seq, text := parted(collapse(text))
	if seq == 0 {
		seq = a.seq
	}
	a.newest = max(a.newest, seq)
	a.put(note{seq: seq, text: clip(a.base+text, entryChars)})
}

// put adds an entry to the current section.
func (a *adopter) put(e note) {
	s := a.section
	if a.foreign && s == findings && worth(e.text) < worthKeeping {
		s = earlier
	}
	e.key = keyOf(s, e.text)
	if a.foreign {
		e.key = e.text
	}
	switch s {
	case findings:
		e.worth = max(worth(e.text), worthKeeping)
	case demands:
		e.worth = demanded(e.text)
	}
	a.sections[s].put(e)
}

// resume makes the adopted last state the newest text of the agent.
func (d *draft) resume() {
	for _, e := range d.sections[state].all() {
		d.say(e.seq, e.text)
		for s := range statements(e.text) {
			d.closes(s)
		}
	}
	begun, acted := d.sections[task].newest(), d.lastSeq
	for _, s := range []section{calls, files, failures, before} {
		acted = max(acted, d.sections[s].newest(), d.known[s].newest())
	}
	d.worked = acted > begun
}

// afterAnalysis returns a summary without the reasoning that Claude Code's summaries begin with.
func afterAnalysis(previous string) string {
	i := strings.Index(previous, "\nAnalysis:\n")
	if i < 0 {
		return previous
	}
	if _, rest, ok := strings.Cut(previous[i:], "\nSummary:\n"); ok {
		return rest
	}
	return previous
}

var headings = func() map[string]section {
	all := map[string]section{
		"## Facts": findings, "## Open": plan, "## Files": reads, "## Errors, solved": solved, // of earlier versions
	}
	for s := range layout {
		all[layout[s].heading] = section(s)
	}
	return all
}()

// meanings are words in the headings of foreign summaries and the sections that they mean, the first that fits.
var meanings = []struct {
	section section
	words   []string
}{
	{next, []string{"next step", "pending", "remaining", "to do", "todo"}},
	{said, []string{"user message", "all user"}},
	{state, []string{"current work", "current state", "in progress"}},
	{goal, []string{"request", "intent", "objective", "overall goal"}},
	{demands, []string{"constraint", "preference"}},
	{earlier, []string{"concept", "file", "code"}},
	{findings, []string{"decision", "finding", "learning", "knowledge", "error", "problem", "context"}},
	{before, []string{"completed", "done", "progress"}},
}

// headingMeans returns the section that a line means, if it is the heading of a part of a foreign summary: a line after
// number signs, in bold, or with a number before it and a colon at its end.
func headingMeans(line string) (section, bool) {
	const longest = 60
	if len(line) > longest || line == "" {
		return 0, false
	}
	text := strings.Trim(bare(line), "*: ")
	bold := strings.HasPrefix(line, "**") && (strings.HasSuffix(line, "**") || strings.HasSuffix(line, ":"))
	numbered := line[0] >= '1' && line[0] <= '9' && strings.HasSuffix(strings.TrimRight(line, "* "), ":")
	tag := strings.HasPrefix(line, "<") && strings.HasSuffix(line, ">") && !strings.Contains(line, "/")
	if !strings.HasPrefix(line, "#") && !bold && !numbered && !tag {
		return 0, false
	}
	text = strings.ReplaceAll(strings.ToLower(strings.Trim(text, "<>")), "_", " ")
	for _, m := range meanings {
		if contains(m.words, text) {
			return m.section, true
		}
	}
	return earlier, true
}

// keyOf returns the key with which an entry of a section was written.
func keyOf(s section, text string) string {
	switch s {
	case state:
		return ""
	case files, reads:
		path, _, _ := strings.Cut(text, use)
		return path
	case calls, failures, solved:
		subject, _, _ := strings.Cut(text, outcome)
		return subject
	case task:
		if strings.HasPrefix(text, then) {
			return then
		}
	case plan:
		return planKey(text)
	}
	return text
}

// planKey returns the key of an entry of the plan.
func planKey(text string) string {
	if strings.HasPrefix(text, doneMark) {
		return doneMark
	}
	what, isTodo := strings.CutPrefix(text, todoMark)
	if !isTodo {
		return strings.TrimPrefix(text, boxMark)
	}
	if id, _, ok := strings.Cut(what, " "); ok && strings.HasPrefix(id, "#") {
		return id
	}
	if i := strings.LastIndex(what, " ("); i >= 0 {
		return what[:i]
	}
	return what
}
