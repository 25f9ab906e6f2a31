package summary

import (
	"fmt"
	"slices"
	"strings"
)

// conversation returns the messages that style Codelia sends before its instruction: those that stay in the view, too,
// with the earlier summary where it stands there. Reasoning is left out, and what is no text is described. A call
// without a result, which providers refuse, is left out; so is a message that becomes empty by that. A result without
// a call is sent as the user's text.
func conversation(r Request) []Message {
	all := slices.Concat(r.Lead, earlierMessages(r), r.Messages, r.Tail)
	pairs := pairsOf(all)
	sent := make([]Message, 0, len(all)+1)
	for i, m := range all {
		if m.Role == "reasoning" {
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		kept := m.Parts[:0]
		for j, p := range m.Parts {
			switch {
			case p.Kind == Reasoning, p.Kind == Call && !pairs[place{i, j}]:
				continue
			case p.Kind == Other:
				p = Part{Kind: Text, Text: "[" + described(p) + "]"}
			case p.Kind == Result && !pairs[place{i, j}]:
				m.Role, p = "user", Part{Kind: Text, Text: p.Text}
			}
			kept = append(kept, p)
		}
		if m.Parts = kept; len(kept) > 0 {
			sent = append(sent, m)
		}
	}
	return sent
}

// place is where a part is: a message and its part.
type place struct{ message, part int }

// pairsOf returns the calls that are answered, and the results that answer them.
func pairsOf(all []Message) map[place]bool {
	open, pairs := map[string]place{}, map[place]bool{}
	for i, m := range all {
		for j, p := range m.Parts {
			switch p.Kind {
			case Call:
				open[p.CallID] = place{i, j}
			case Result:
				if call, ok := open[p.CallID]; ok {
					pairs[call], pairs[place{i, j}] = true, true
					delete(open, p.CallID)
				}
			}
		}
	}
	return pairs
}

// earlierMessages returns the summary before the messages as the emulated systems have it in their histories.
func earlierMessages(r Request) (all []Message) {
	role := "user"
	before, after := "", ""
	switch r.Style {
	case Falai:
		role, before = "system", "[Conversation Summary]\n"
	case Cortex:
		before, after = "<compaction-summary>\n", "\n</compaction-summary>"
	}
	for _, text := range []string{r.Retained, r.Previous} {
		if text != "" {
			all = append(all, Message{
				Role: role, Summary: true, Parts: []Part{{Kind: Text, Text: before + text + after}},
			})
		}
	}
	return all
}

// told returns the messages that the prompts of Falai and Cortex contain, whose histories have an assistant and no
// model, and no reasoning. In Falai's a result is a message of its own, so that nothing a tool has said reads as
// another's word.
func told(r Request) (all []Message) {
	for _, m := range append(earlierMessages(r), r.Messages...) {
		if m.Role == "model" {
			m.Role = "assistant"
		}
		parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool { return p.Kind == Reasoning })
		if len(parts) == 0 && len(m.Parts) > 0 {
			continue
		}
		if m.Parts = parts; r.Style == Falai {
			all = append(all, resultsApart(m)...)
		} else {
			all = append(all, m)
		}
	}
	return all
}

// resultsApart splits a message so that its results are in messages with the role of a tool. The order stays.
func resultsApart(m Message) (all []Message) {
	begin := 0
	for i := 1; i <= len(m.Parts); i++ {
		isResult := m.Parts[begin].Kind == Result
		if i < len(m.Parts) && isResult == (m.Parts[i].Kind == Result) {
			continue
		}
		next := m
		if next.Parts = m.Parts[begin:i]; isResult {
			next.Role = "tool"
		}
		all = append(all, next)
		begin = i
	}
	if all == nil {
		return []Message{m}
	}
	return all
}

// described returns what a part is that is no text: its kind, and its media type behind it.
func described(p Part) string {
	kind, media, typed := strings.Cut(p.Media, " ")
	what := label(kind)
	if typed {
		what += " " + label(media)
	}
	if p.Media == "" {
		what = "content that is no text"
	}
	if p.Bytes > 0 {
		what += fmt.Sprintf(", %d bytes", p.Bytes)
	}
	return what
}
