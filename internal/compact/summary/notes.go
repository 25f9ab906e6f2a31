package summary

import (
	"slices"
	"strings"
)

// section is one of the headings of Extract, in the order of the summary.
type section int

const (
	goal section = iota
	demands
	facts
	open
	said
	findings
	files
	calls
	failures
	solved
	earlier
	state
	sectionCount
)

// layout has for each section its heading, its share of the room if there is not enough for all, whether then its
// newest entries are dropped first, and whether its entries are facts to retain.
var layout = [sectionCount]struct {
	heading    string
	share      int
	dropNewest bool
	retained   bool
}{
	goal:     {"## Goal", 10, true, true},
	demands:  {"## The user's demands", 34, false, true},
	facts:    {"## Facts", 8, false, true},
	open:     {"## Open", 8, false, true},
	said:     {"## The user's messages", 10, false, false},
	findings: {"## Decisions and findings", 16, false, false},
	files:    {"## Files", 12, false, false},
	calls:    {"## Calls", 6, false, false},
	failures: {"## Errors, not solved", 6, false, false},
	solved:   {"## Errors, solved", 2, false, false},
	earlier:  {"## Earlier summary", 10, true, false},
	state:    {"## Last state", 8, false, false},
}

// notes are the entries of a section, each on one line, oldest first. A key has one entry.
type notes struct {
	entries []entry
	at      map[string]int
}

type entry struct {
	key, text string
}

// put adds an entry as the newest and removes the one with the same key.
func (n *notes) put(key, text string) {
	n.drop(key)
	if n.at == nil {
		n.at = map[string]int{}
	}
	n.at[key] = len(n.entries)
	n.entries = append(n.entries, entry{key, text})
}

// keep adds an entry unless the key has one.
func (n *notes) keep(key, text string) {
	if _, ok := n.at[key]; !ok {
		n.put(key, text)
	}
}

// drop removes the entry with that key and returns its text.
func (n *notes) drop(key string) (text string, ok bool) {
	i, ok := n.at[key]
	if !ok {
		return "", false
	}
	text = n.entries[i].text
	n.entries[i] = entry{}
	delete(n.at, key)
	return text, true
}

// dropAll removes the entries whose text, without its seq, has that beginning.
func (n *notes) dropAll(beginning string) {
	before := n.entries
	*n = notes{}
	for _, e := range before {
		if text := withoutSeq(e.text); e.text != "" && !strings.HasPrefix(text, beginning) {
			n.put(e.key, e.text)
		}
	}
}

// lines returns the entries that were not removed, as lines of a list.
func (n *notes) lines() []string {
	var lines []string
	for _, e := range n.entries {
		if e.text != "" {
			lines = append(lines, "- "+e.text+"\n")
		}
	}
	return lines
}

// fit returns the lines of each section that fit into limit tokens together, headings included.
func fit(sections *[sectionCount]notes, limit int) (kept [sectionCount][]string) {
	var needs [sectionCount]int
	for s := range sections {
		kept[s] = sections[s].lines()
		for _, line := range kept[s] {
			needs[s] += cost(line)
		}
		if needs[s] > 0 {
			needs[s] += headingCost(section(s))
		}
	}
	for s, room := range divide(needs, limit) {
		if room < needs[s] {
			kept[s] = within(kept[s], room-headingCost(section(s)), layout[s].dropNewest)
		}
	}
	return kept
}

func headingCost(s section) int { return cost(layout[s].heading) + 2 }

// divide returns the room of each section: what it needs, or its share of what the others do not need.
func divide(needs [sectionCount]int, limit int) (rooms [sectionCount]int) {
	waiting := make([]int, 0, sectionCount)
	for s, need := range needs {
		if need > 0 {
			waiting = append(waiting, s)
		}
	}
	for len(waiting) > 0 {
		shares := 0
		for _, s := range waiting {
			shares += layout[s].share
		}
		rest, before := limit, len(waiting)
		waiting = slices.DeleteFunc(waiting, func(s int) bool {
			rooms[s] = limit * layout[s].share / shares
			if needs[s] > rooms[s] {
				return false
			}
			rooms[s] = needs[s]
			rest -= needs[s]
			return true
		})
		if len(waiting) == before {
			break
		}
		limit = rest
	}
	return rooms
}

// within returns the newest lines, or the oldest, that fit into the room. It skips lines that are too long for the rest
// of the room and continues with shorter ones.
func within(lines []string, room int, dropNewest bool) (kept []string) {
	order := slices.Backward(lines)
	if dropNewest {
		order = slices.All(lines)
	}
	for _, line := range order {
		if cost := cost(line); cost <= room {
			room -= cost
			kept = append(kept, line)
		}
	}
	if !dropNewest {
		slices.Reverse(kept)
	}
	return kept
}

// write returns the text of the retained sections, or of the others.
func write(kept [sectionCount][]string, retained bool) string {
	var b strings.Builder
	for s, lines := range kept {
		if layout[s].retained != retained || len(lines) == 0 {
			continue
		}
		b.WriteString(layout[s].heading + "\n")
		for _, line := range lines {
			b.WriteString(line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
