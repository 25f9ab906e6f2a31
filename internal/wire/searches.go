package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// A search of tools that the caller runs is a call of Responses, and what it found its output: the API refuses the one
// without the other, as OpenAI's own client knows (openai/codex, context_manager/normalize.rs). Neither is a Call or a
// Result, because no other format has them.
const (
	searchCall   = "tool_search_call"
	searchOutput = "tool_search_output"
)

// searchID returns the id that the caller's search of tools and its output have in common, "" for any other item. What
// the API searched itself has none.
func searchID(item []byte) string {
	isSearch := isType(item, searchCall) || isType(item, searchOutput)
	if !isSearch || stringMember(item, "execution") == "server" {
		return ""
	}
	return stringMember(item, "call_id")
}

// unpaired returns which of some items are searches without an output behind them, and which are outputs without a
// search before them.
func unpaired(items [][]byte) (calls, outputs []int) {
	open := map[string][]int{}
	for i, item := range items {
		id := searchID(item)
		switch {
		case id == "":
		case isType(item, searchCall):
			open[id] = append(open[id], i)
		case len(open[id]) == 0:
			outputs = append(outputs, i)
		default:
			open[id] = open[id][1:]
		}
	}
	for _, left := range open {
		calls = append(calls, left...)
	}
	slices.Sort(calls)
	return calls, outputs
}

// searchesPaired checks V-R11. The last items may be searches that the caller has not run yet.
func (c *checker) searchesPaired() {
	calls, outputs := unpaired(c.bodies)
	passed := func(i int) bool {
		return slices.ContainsFunc(c.bodies[i:], isMessageItem)
	}
	for _, i := range calls {
		if c.settled() || passed(i) {
			c.report(i, "the search %q has no output", searchID(c.bodies[i]))
		}
	}
	for _, i := range outputs {
		c.report(i, "the output %q is of no search before it", searchID(c.bodies[i]))
	}
}

// settleSearches gives searches that got no output one that has found nothing, and makes what was found by a search
// that is not there tools that the program adds.
func (r *repairer) settleSearches(list []Message) []Message {
	if r.target != session.OpenAIResponses {
		return list
	}
	items := make([][]byte, len(list))
	said := 0 // the last item that is a message
	for i := range list {
		n := &list[i]
		if r.keepsFormat(n) && len(n.Blocks) == 1 && n.Blocks[0].Kind == Opaque {
			items[i] = n.Blocks[0].Raw
		}
		if !r.keepsFormat(n) || isMessageItem(n.Raw) {
			said = i
		}
	}
	calls, outputs := unpaired(items)
	if len(calls)+len(outputs) == 0 {
		return list
	}
	kept := make([]Message, 0, len(list)+len(calls))
	for i := range list {
		n := &list[i]
		isOpen := slices.Contains(calls, i)
		switch {
		case slices.Contains(outputs, i) && !r.addFound(n):
			continue
		case isOpen && i > said && r.Pending == DropPending:
			r.repaired("V-R11", "call_dropped", n, "the search %q has no output yet", searchID(items[i]))
			continue
		}
		kept = append(kept, *n)
		if isOpen && (i < said || r.Pending == SynthesizePending) {
			r.repaired("V-R11", "result_synthesized", n, "the search %q has no output", searchID(items[i]))
			kept = append(kept, foundNothing(n, searchID(items[i])))
		}
	}
	return kept
}

// foundNothing returns the output of a search of which nothing is known.
func foundNothing(search *Message, id string) Message {
	output := []byte(`{"type":"` + searchOutput + `","execution":"client","status":"completed","call_id":`)
	output = append(rawjson.Quote(output, []byte(id)), `,"tools":[]}`...)
	block := Block{Kind: Opaque, Format: session.OpenAIResponses, Raw: output}
	return Message{Format: block.Format, Raw: output, Origin: search.Origin, Role: Assistant, Blocks: []Block{block},
		Edited: true}
}

// addFound makes the output of a search that is not there an item that adds the same tools, and reports whether there
// are any.
func (r *repairer) addFound(n *Message) bool {
	p := &n.Blocks[0]
	id, tools := searchID(p.Raw), valueOf(p.Raw, "tools")
	for range elementsOf(p.Raw, "tools") {
		r.repaired("V-R11", "search_as_tools", n,
			"what the search %q found, which is not there, are tools that are added", id)
		p.Raw = wrap(nil, `{"type":"additional_tools","role":"developer","tools":`, tools, "}")
		n.Raw, n.Extra = p.Raw, nil
		n.Role, n.Edited = System, true
		return true
	}
	r.repaired("V-R11", "empty_message", n, "the output of the search %q, which is not there, has no tools", id)
	return false
}
