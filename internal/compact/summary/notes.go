package summary

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// notes are the entries of a section, each on one line, oldest first. A key has one entry.
type notes struct {
	entries []note
	at      map[string]int
}

// note is an entry of a section. It is on one line, and empty once it was removed.
type note struct {
	key   string
	seq   int64 // of the message that it comes from, 0 if unknown
	text  string
	worth int
}

// line returns a note as a line of a list.
func (n note) line() string {
	if n.seq == 0 {
		return "- " + n.text + "\n"
	}
	return "- " + at(n.seq, n.text) + "\n"
}

// cost returns about the tokens of the line.
func (n note) cost() int {
	const mark = 5 // of the mark of a list, the seq and the line's end
	return cost(n.text) + mark
}

// put adds an entry as the newest and removes the one with the same key.
func (n *notes) put(e note) {
	n.drop(e.key)
	if n.at == nil {
		n.at = map[string]int{}
	}
	if len(n.entries) > 2*len(n.at)+spare {
		n.tidy()
	}
	n.at[e.key] = len(n.entries)
	n.entries = append(n.entries, e)
}

// spare is how many removed entries may stay.
const spare = 64

// newestOf returns the newest entries, at most limit of them unless it is 0.
func (n *notes) newestOf(limit int) []note {
	all := n.all()
	if limit > 0 && len(all) > limit {
		return all[len(all)-limit:]
	}
	return all
}

// tidy removes the entries that were removed from the list, too.
func (n *notes) tidy() {
	n.entries = n.all()
	for i, e := range n.entries {
		n.at[e.key] = i
	}
}

// keep adds an entry unless the key has one.
func (n *notes) keep(e note) {
	if _, ok := n.at[e.key]; !ok {
		n.put(e)
	}
}

// drop removes the entry with that key and returns it.
func (n *notes) drop(key string) (dropped note, ok bool) {
	i, ok := n.at[key]
	if !ok {
		return note{}, false
	}
	dropped = n.entries[i]
	n.entries[i] = note{}
	delete(n.at, key)
	return dropped, true
}

// dropAll removes the entries whose text has that beginning.
func (n *notes) dropAll(beginning string) {
	for i := range n.entries {
		if e := &n.entries[i]; e.text != "" && strings.HasPrefix(e.text, beginning) {
			n.drop(e.key)
		}
	}
}

// newest returns the highest seq of an entry, 0 for none.
func (n *notes) newest() (seq int64) {
	for _, e := range n.entries {
		seq = max(seq, e.seq)
	}
	return seq
}

// all returns the entries that were not removed.
func (n *notes) all() []note {
	return slices.DeleteFunc(slices.Clone(n.entries), func(e note) bool { return e.text == "" })
}

// lines are the lines of each section that a summary keeps.
type lines struct {
	of   [sectionCount][]string
	base [sectionCount]string // the directory of all files of a section, which stands once, in the heading
}

// fit returns the lines of each section that fit into limit tokens together, headings included. Newest is the seq of
// the newest message.
func fit(sections *[sectionCount]notes, limit int, newest int64) (kept lines) {
	var needs [sectionCount]int
	var entries [sectionCount][]note
	for s := range sections {
		entries[s] = sections[s].newestOf(layout[s].limit)
		if section(s).ofFiles() {
			kept.base[s] = trimBase(entries[s])
		}
		for _, e := range entries[s] {
			needs[s] += e.cost()
		}
		if needs[s] > 0 {
			needs[s] += cost(kept.heading(section(s))) + 2
		}
	}
	for s, room := range divide(needs, limit) {
		if room < needs[s] {
			room -= cost(kept.heading(section(s))) + 2
			all := entries[s]
			entries[s] = within(all, room, layout[s].order, newest)
			if e, ok := vital(section(s), all); ok && !slices.Contains(entries[s], e) {
				entries[s] = beginning(e, room)
			}
		}
		for _, e := range entries[s] {
			kept.of[s] = append(kept.of[s], e.line())
		}
	}
	return kept
}

// heading returns the heading of a section.
func (l *lines) heading(s section) string {
	if l.base[s] != "" {
		return layout[s].heading + inDirectory + l.base[s]
	}
	return layout[s].heading
}

// inDirectory stands between the heading of a section of files and their directory.
const inDirectory = ", in "

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

// within returns the entries that fit into the room, in the order of their section: it chooses the newest, the oldest,
// or those that are worth most. It skips entries that are too long for the rest of the room and continues with shorter
// ones.
func within(entries []note, room int, by order, newest int64) []note {
	chosen := make([]int, len(entries))
	for i := range entries {
		chosen[i] = i
	}
	switch by {
	case newestFirst:
		slices.Reverse(chosen)
	case worthFirst:
		slices.SortFunc(chosen, func(i, j int) int {
			return cmp.Or(cmp.Compare(entries[j].rank(newest), entries[i].rank(newest)), cmp.Compare(j, i))
		})
		chosen = newsFirst(entries, chosen)
	}
	chosen = slices.DeleteFunc(chosen, func(i int) bool {
		need := entries[i].cost()
		if need > room {
			return true
		}
		room -= need
		return false
	})
	slices.Sort(chosen)
	kept := make([]note, len(chosen))
	for i, at := range chosen {
		kept[i] = entries[at]
	}
	return kept
}

// vital returns the entry of a section that is cut rather than left out: the first goal, or the newest task.
func vital(s section, entries []note) (e note, ok bool) {
	switch s {
	case goal:
		return entries[0], true
	case task:
		for _, t := range entries {
			if t.key != then {
				e, ok = t, true
			}
		}
	}
	return e, ok
}

// beginning returns an entry that is cut until it fits into the room, none if no more than a few words would be left.
func beginning(e note, room int) []note {
	const fewest = 40
	for n := utf8.RuneCountInString(e.text) * 3 / 4; n >= fewest; n = n * 3 / 4 {
		if e.text = clip(e.text, n); e.cost() <= room {
			return []note{e}
		}
	}
	return nil
}

// newsFirst moves the entries to the end that name only what entries before them name: an agent often says the same
// several times. What a user wants stays where it is.
func newsFirst(entries []note, order []int) []int {
	named := map[string]bool{}
	var news, again []int
	for _, i := range order {
		names, new := 0, 0
		for name := range namesOf(entries[i].text) {
			if names++; !named[name] {
				named[name] = true
				new++
			}
		}
		if names > 0 && new == 0 && entries[i].worth < wished {
			again = append(again, i)
		} else {
			news = append(news, i)
		}
	}
	return append(news, again...)
}

// write returns the text of the sections that want is true for.
func (l *lines) write(want func(section) bool) string {
	var b strings.Builder
	for s, list := range l.of {
		if !want(section(s)) || len(list) == 0 {
			continue
		}
		b.WriteString(l.heading(section(s)) + "\n")
		for _, line := range list {
			b.WriteString(line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
