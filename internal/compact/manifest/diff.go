package manifest

import (
	"cmp"
	"slices"
)

// Whole is the action of what a view has as it was appended; Parts is that of messages some of whose parts have left.
const (
	Whole = "keep"
	Parts = "parts"
)

// State is what a view has of something.
type State struct {
	// `parts`: some parts of the messages are incomplete
	Do     string `json:"do" schema:"anyOf: [{$ref: '#/components/schemas/Do'}, {const: parts}]"`
	Stage  string `json:"stage,omitempty"`
	Reason string `json:"reason,omitempty"`
	Tokens int64  `json:"tokens"`
}

// Kind is what happened to something between two views.
type Kind string

// The kinds: it was whole, it is whole again, or neither.
const (
	Left     Kind = "left"
	Returned Kind = "returned"
	Changed  Kind = "changed"
)

// Change is a part of a message, or whole messages, that two views show differently.
type Change struct {
	Seq     int64  `json:"seq"`
	LastSeq int64  `json:"last_seq"`
	Part    int    `json:"part"`
	Tool    string `json:"tool,omitempty"`
	// `left`: it was complete before; `returned`: it is complete again; `changed`: neither
	Kind Kind   `json:"change"`
	From State  `json:"from"`
	To   State  `json:"to"`
	Ref  string `json:"ref,omitempty"` // of a result, or of messages
}

// Tokens returns how many more tokens the second view has.
func (c *Change) Tokens() int64 { return c.To.Tokens - c.From.Tokens }

// Compare returns what differs between two views, given the merged manifest of each. The sum of the changes' Tokens is
// the difference of what the manifests save. Messages that left one view as a whole are one change, whatever happened
// to their parts in the other.
func Compare(from, to Manifest) []Change {
	changes := []Change{}
	for _, g := range grouped(from, to) {
		if c := g.change(); c.From != c.To {
			changes = append(changes, c)
		}
	}
	return changes
}

// group holds what two manifests say about one part, or about messages that one of them took out as a whole.
type group struct {
	about    Entry // the one that covers the others
	from, to []Entry
}

// grouped puts the entries of two manifests into groups, by seq and part.
func grouped(from, to Manifest) []*group {
	var groups []*group
	all := slices.Concat(from, to)
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(b.LastSeq, a.LastSeq),
			cmp.Compare(a.key().part, b.key().part))
	})
	for _, e := range all {
		if n := len(groups); n == 0 || !groups[n-1].holds(&e) {
			groups = append(groups, &group{about: e})
		}
	}
	distribute(groups, from, func(g *group) *[]Entry { return &g.from })
	distribute(groups, to, func(g *group) *[]Entry { return &g.to })
	return groups
}

func (g *group) holds(e *Entry) bool { return g.about.key() == e.key() || g.about.covers(e) }

// distribute gives every entry of a sorted manifest to the group that holds it. The groups have the same order.
func distribute(groups []*group, m Manifest, side func(*group) *[]Entry) {
	i := 0
	for _, e := range m {
		for !groups[i].holds(&e) {
			i++
		}
		*side(groups[i]) = append(*side(groups[i]), e)
	}
}

func (g *group) change() Change {
	c := Change{
		Seq: g.about.Seq, LastSeq: g.about.LastSeq, Part: g.about.Part, Tool: g.about.Tool, Ref: g.about.Ref,
		Kind: Changed, From: g.state(g.from), To: g.state(g.to),
	}
	switch Whole {
	case c.From.Do:
		c.Kind = Left
	case c.To.Do:
		c.Kind = Returned
	}
	return c
}

// state returns what the view of one side has of the group.
func (g *group) state(entries []Entry) State {
	tokens := g.about.TokensBefore - Manifest(entries).Saved()
	switch {
	case len(entries) == 0:
		return State{Do: Whole, Tokens: tokens}
	case entries[0].key() == g.about.key():
		return State{Do: entries[0].Do, Stage: entries[0].Stage, Reason: entries[0].Reason, Tokens: tokens}
	}
	return State{Do: Parts, Tokens: tokens}
}
