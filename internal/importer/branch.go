package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tree is how the records of a source follow each other: each names the one before it. Where more than one follows a
// record, the conversation went back there and on from it, unless they belong together.
type tree struct {
	id, parent string // members of a record
	leaf       string // path in a run to the id of the record that it ends with, "" for the last record
	// spoke reports whether a record is one of the main conversation
	spoke func(o object) bool
	// ties are what records that belong together share although they branch, such as a call and its result; it may be
	// nil
	ties func(o object) []string
}

// anotherBranch is the kind under which messages are counted that were not gone on with.
const anotherBranch = skipped("message of another branch")

// grown is the tree of a file's records.
type grown struct {
	*tree
	records []entry
	at      map[string]int // records by their ids
	befores []int          // the record that each follows, -1 for none, less for one that the file lacks

	beginnings map[string]int // records that the file lacks, by their ids
	tops       map[int]int    // what top has found
	path       map[int]bool   // those that lead to the last one
}

// branch returns the records that lead to the one of an id, without that to the last one, or to the last one of the
// branch that was asked for. Others are counted and noted. A list whose ids are not unique has no tree: all its records
// are one conversation, as are those of a source without one. A list that lacks the branch that was asked for has none.
func (f *File) branch(records []entry, leaf string) []entry {
	if f.kind.tree == nil {
		return records
	}
	g := &grown{tree: f.kind.tree, records: records, at: map[string]int{}, path: map[int]bool{},
		beginnings: map[string]int{}, tops: map[int]int{}}
	last := -1
	if f.grow(g) {
		last = g.last(f.wanted)
		if named, ok := g.at[leaf]; ok && f.wanted == "" {
			last = named
		}
	}
	switch {
	case last < 0 && f.wanted != "":
		return nil
	case last < 0:
		return records
	}
	f.found = true
	g.lead(last)
	clear(g.tops)
	tied := g.tied()
	begins := map[int]int{} // first records of other branches, and how many messages each has
	kept := make([]entry, 0, len(records))
	for i, e := range records {
		if !g.spoke(e.object) || g.path[i] {
			kept = append(kept, e)
			continue
		}
		top := g.top(i)
		if top < 0 && (f.wanted == "" || i < last) || top >= 0 && g.isTied(top, tied) {
			kept = append(kept, e)
			continue
		}
		if top >= 0 {
			begins[top]++
		}
		f.count(e, anotherBranch)
	}
	for _, top := range slices.Sorted(maps.Keys(begins)) {
		f.note(records[top].line, "%d messages of another branch begin here, which was not gone on with: it is "+
			"imported with branch %s", begins[top], g.name(top))
	}
	return kept
}

// grow finds the records by their ids. It reports false, with a note, if two have the same id and follow different
// ones. Records that follow each other in a circle are noted.
func (f *File) grow(g *grown) bool {
	for i, e := range g.records {
		id := e.text(g.id)
		if first, again := g.at[id]; again && g.records[first].text(g.parent) != e.text(g.parent) {
			f.note(e.line, "two messages have the id %q and follow different ones: all are read in their order", id)
			return false
		} else if id != "" && !again {
			g.at[id] = i
		}
	}
	for i := range g.records {
		g.befores = append(g.befores, g.before(i))
	}
	if circling := g.circling(); len(circling) > 0 {
		first := g.records[circling[0]].line
		f.note(first, "%d messages follow each other in a circle (%s): none of them is the first, and their order is "+
			"that of the file or of their times", len(circling), g.parent)
	}
	return true
}

// circling returns the messages that follow themselves, directly or over others.
func (g *grown) circling() (all []int) {
	ends := make([]int, len(g.records)) // the walk that passed a record: its first record, from 1
	for begin, e := range g.records {
		i := begin
		for i >= 0 && ends[i] == 0 {
			ends[i] = begin + 1
			i = g.befores[i]
		}
		if id := e.text(g.id); id != "" && id == e.text(g.parent) {
			all = append(all, begin)
		}
		if i < 0 || ends[i] != begin+1 {
			continue
		}
		all = append(all, i)
		for j := g.befores[i]; j != i; j = g.befores[j] {
			all = append(all, j)
		}
	}
	return slices.DeleteFunc(all, func(i int) bool { return !g.spoke(g.records[i].object) })
}

// before returns the record that record i follows, -1 if it is not known. Messages that begin a conversation follow one
// that is not in the file, so that another beginning is another branch; but a summary of what was compacted
// continues it.
func (g *grown) before(i int) int {
	o := g.records[i].object
	parent, named := o[g.parent]
	id := stringValue(parent)
	before, known := g.at[id]
	switch {
	case known && before != i:
		return before
	case known || !named || !g.spoke(o) || o.is("isCompactSummary"):
		return -1
	}
	begin, known := g.beginnings[id]
	if !known {
		begin = -2 - len(g.beginnings)
		g.beginnings[id] = begin
	}
	return begin
}

// lead puts a record and all that it follows on the path, and of earlier ones that are not connected with these, the
// last and all that it follows.
func (g *grown) lead(last int) {
	for i := last; i != -1 && !g.path[i]; i = g.follow(i) {
		g.path[i] = true
	}
	for i, e := range slices.Backward(g.records[:last]) {
		if g.spoke(e.object) && !g.path[i] && g.top(i) < 0 {
			for ; i != -1 && !g.path[i]; i = g.follow(i) {
				g.path[i] = true
			}
		}
	}
}

// follow returns the record that another follows, -1 if there is none.
func (g *grown) follow(i int) int {
	if i < 0 {
		return -1
	}
	return g.befores[i]
}

// last returns the last record of the conversation, or of those that follow the record whose id begins with a name; -1
// if there is none.
func (g *grown) last(name string) int {
	begin := -1
	if name != "" {
		begin = slices.IndexFunc(g.records, func(e entry) bool { return strings.HasPrefix(e.text(g.id), name) })
		if begin < 0 {
			return -1
		}
	}
	for i, e := range slices.Backward(g.records) {
		if g.spoke(e.object) && e.text(g.id) != "" && (begin < 0 || g.follows(i, begin)) {
			return i
		}
	}
	return -1
}

// follows reports whether record i is another or one of those behind it.
func (g *grown) follows(i, another int) bool {
	for steps := 0; i >= 0 && steps <= len(g.records); steps++ {
		if i == another {
			return true
		}
		i = g.follow(i)
	}
	return false
}

// top returns the first message of the branch that a message is on, -1 if it does not leave the path: records that are
// not connected with the others are no branch.
func (g *grown) top(of int) int {
	i, first := of, of
	for range g.records {
		before := g.befores[i]
		known, again := g.tops[before]
		switch {
		case g.path[before]:
			g.tops[of] = first
			return first
		case before < 0:
			g.tops[of] = -1
			return -1
		case again:
			g.tops[of] = known
			return known
		case g.spoke(g.records[before].object):
			first = before
		}
		i = before
	}
	return -1
}

// tied returns what ties other records to those of the path.
func (g *grown) tied() map[string]bool {
	all := map[string]bool{}
	for i := range g.path {
		if g.ties != nil && i >= 0 {
			for _, tie := range g.ties(g.records[i].object) {
				all[tie] = true
			}
		}
	}
	return all
}

func (g *grown) isTied(i int, tied map[string]bool) bool {
	return g.ties != nil && slices.ContainsFunc(g.ties(g.records[i].object), func(tie string) bool { return tied[tie] })
}

// name returns what a branch is called: the beginning of the id of its first record, if no other id begins so.
func (g *grown) name(top int) string {
	id := g.records[top].text(g.id)
	short := id[:min(len(id), 8)]
	same := 0
	for other := range g.at {
		if strings.HasPrefix(other, short) {
			same++
		}
	}
	if same > 1 {
		return id
	}
	return short
}

// undone takes messages off the end of a draft that the program went back behind, and names them as a branch.
func (d *draft) undone(slots []*slot) {
	taken := 0
	for _, s := range slots {
		if s.body() != nil {
			taken++
		}
		s.body = func() []byte { return nil }
	}
	if taken == 0 {
		return
	}
	d.file.Report.Imported -= taken
	d.file.Report.Skipped[string(anotherBranch)] += taken
	d.note("%d messages before this were gone back behind: they are imported with branch %s", taken, lineBranch(d.line))
}

// lineBranch returns the name of the branch that ends where a record goes back.
func lineBranch(line int) string { return fmt.Sprintf("line-%d", line) }

// isWanted reports whether the branch that ends where a record goes back is the one that is read.
func (f *File) isWanted(line int) bool {
	f.found = f.found || f.wanted == lineBranch(line)
	return f.wanted == lineBranch(line)
}
