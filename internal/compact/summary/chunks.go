package summary

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Chunks divides a request whose dialogue has more than maxTokens tokens into requests for parts of its messages, in
// their order and of about the same size; it returns a request that is small enough as it is. Messages stay whole
// unless one alone is too large: that is divided at the ends of lines, and each piece has the seq of the message. The
// earlier summary goes with the first part. The answers become one with Reduce.
//
// An answer has at most a quarter of the tokens of a part, so that dividing again what Reduce returns comes to an end.
// A limit that is too small for the instructions is taken as the smallest that is not.
func Chunks(r Request, maxTokens int) []Request {
	if DialogueOf(r, measured).Tokens() <= maxTokens {
		return []Request{r}
	}
	part := r
	part.Tail, part.Messages = nil, nil
	part.Chunk, part.Chunks = 1, 2
	fixed := DialogueOf(part, measured).Tokens()
	room := max(maxTokens-fixed, leastRoom)
	if limit := max(room/4, 1); part.MaxTokens <= 0 || part.MaxTokens > limit {
		part.MaxTokens = limit
	}
	groups := grouped(divided(r.Messages, room), room)
	if len(groups) <= 1 {
		return []Request{r} // only the earlier summary is large, which is not divided
	}
	requests := make([]Request, len(groups))
	for i, messages := range groups {
		next := part
		if i > 0 {
			next = part.only()
			next.First = messages[0].Seq
		}
		next.Messages = messages
		next.Chunk, next.Chunks = i+1, len(groups)
		if i < len(groups)-1 {
			next.Last = messages[len(messages)-1].Seq
		}
		requests[i] = next
	}
	return requests
}

// measured stands for a delimiter where only the size counts.
const measured = "7f3a9c0e5b1d48627f3a9c0e5b1d4862"

// leastRoom is how many tokens of messages a part has at least.
const leastRoom = 256

// grouped divides messages into runs of at most room tokens, all of about the same size.
func grouped(messages []Message, room int) (groups [][]Message) {
	total := 0
	for _, m := range messages {
		total += m.tokens()
	}
	even := min(total/max((total+room-1)/room, 1)+room/8, room)
	begin, size := 0, 0
	for i, m := range messages {
		if n := m.tokens(); i > begin && size+n > even {
			groups = append(groups, messages[begin:i])
			begin, size = i, 0
		}
		size += messages[i].tokens()
	}
	if begin < len(messages) {
		groups = append(groups, messages[begin:])
	}
	return groups
}

// divided returns messages in which none has more than room tokens.
func divided(messages []Message, room int) (all []Message) {
	for _, m := range messages {
		if m.tokens() <= room {
			all = append(all, m)
			continue
		}
		for _, p := range m.Parts {
			for _, text := range pieces(p.Text, room/2) {
				piece := m
				p.Text = text
				piece.Parts = []Part{p}
				all = append(all, piece)
			}
		}
	}
	return all
}

// pieces divides a text at the ends of lines into pieces of at most maxTokens tokens. A longer line is divided between
// characters. It looks at each byte a few times at most.
func pieces(text string, maxTokens int) (all []string) {
	var begin, end, size int
	flush := func() {
		if end > begin {
			all = append(all, text[begin:end])
		}
		begin, size = end, 0
	}
	for line := range strings.Lines(text) {
		n := cost(line) + 1
		if size+n > maxTokens {
			flush()
		}
		if n > maxTokens {
			all = append(all, slices.Collect(stretches(line, maxTokens))...)
			begin = end + len(line)
		} else {
			size += n
		}
		end += len(line)
	}
	flush()
	return all
}

// stretches yields the pieces of a long line.
func stretches(line string, maxTokens int) iter.Seq[string] {
	usual := len(line) * maxTokens / cost(line)
	return func(yield func(string) bool) {
		for line != "" {
			n := runeStart(line, usual)
			for n > utf8.UTFMax && cost(line[:n]) > maxTokens {
				n = runeStart(line, n/2)
			}
			if !yield(line[:n]) {
				return
			}
			line = line[n:]
		}
	}
}

// runeStart returns where a character begins at or before n, which is the second one's beginning at least.
func runeStart(line string, n int) int {
	if n >= len(line) {
		return len(line)
	}
	for n > 0 && !utf8.RuneStart(line[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(line)
	}
	return n
}

// tokens returns how many tokens a message has where it is sent, with the line that introduces each of its parts.
func (m Message) tokens() (n int) {
	const line = 24
	for _, p := range m.Parts {
		n += cost(p.Text) + strings.Count(p.Text, "\n") + line
	}
	return n
}

// only returns a request without anything to summarise.
func (r Request) only() Request {
	r.Messages = nil
	r.Lead, r.Tail = nil, nil
	r.Previous, r.Retained = "", ""
	r.Earlier = nil
	r.Chunk, r.Chunks = 0, 0
	return r
}

// Reduce returns the request for one summary of the answers to the parts of a request, in the order of Chunks. If it is
// too large, it can be divided again.
func Reduce(r Request, parts []Answer) Request {
	var facts []string
	r = r.only()
	r.Merge = true
	for i, a := range parts {
		facts = append(facts, Entries(a.Retain)...)
		text := a.Summary
		if r.Style != Sections && a.Retain != "" {
			text = trim(a.Retain + "\n\n" + text)
		}
		r.Messages = append(r.Messages, Message{
			Seq: int64(i + 1), Role: "user", Summary: true, Parts: []Part{{Kind: Text, Text: text}},
		})
	}
	r.Retained = Carry(facts, "\n")
	return r
}
