package names

import (
	"cmp"
	"slices"
)

// Top returns the names that represent a text best, in the order of the text, joined by spaces, in no more than room
// bytes. Of names that occur equally often, paths and symbols count more than ids and numbers. Of a long text it reads
// the beginning and the end.
func Top(text []byte, escaped bool, room int) []byte {
	found := distinct(text, escaped)
	byWorth := slices.Clone(found)
	slices.SortStableFunc(byWorth, func(a, b *counted) int { return cmp.Compare(b.worth(), a.worth()) })
	left := room
	for _, c := range byWorth {
		if need := len(c.Text) + 1; need <= left {
			left -= need
			c.chosen = true
		}
	}
	var line []byte
	for _, c := range found {
		if c.chosen {
			line = append(append(line, c.Text...), ' ')
		}
	}
	return line[:max(len(line)-1, 0)]
}

// counted is a name and how often its text has it.
type counted struct {
	Name
	times  int
	chosen bool
}

// worth ranks the names of one text.
func (c *counted) worth() int {
	return min(c.times, 4) + [...]int{Path: 3, Symbol: 2, ID: 2, Setting: 3, Number: 0}[c.Kind]
}

// headBytes and tailBytes are how much of a long text is read.
const (
	headBytes = 6144
	tailBytes = 2048
)

// distinct returns the names of a text in the order of their first occurrences.
func distinct(text []byte, escaped bool) (list []*counted) {
	known := map[string]*counted{}
	add := func(text []byte) {
		for name := range Scan(text, escaped) {
			if c := known[string(name.Text)]; c != nil {
				c.times++
				continue
			}
			c := &counted{Name: name, times: 1}
			known[string(name.Text)] = c
			list = append(list, c)
		}
	}
	if len(text) <= headBytes+tailBytes {
		add(text)
		return list
	}
	add(text[:headBytes])
	add(text[len(text)-tailBytes:])
	return list
}
