package compact

// Wording says what stands in the place of what has left the view. Each text is a template: {name} is replaced by a
// value, and a name that the template's kind does not have is an error. words.go gives the names of each. The
// ref brings the whole content back.
type Wording struct {
	Cap         string `json:"cap"`         // between head and tail of an oversized result: ref, tool, chars, bytes, tokens, cut_tokens, head
	Bookend     string `json:"bookend"`     // between the head and tail of an old one: the same
	Stub        string `json:"stub"`        // of a superseded result: ref, tool, resource, bytes, seq (of the newer one)
	Stale       string `json:"stale"`       // of a result whose file was written later: the same (seq of the write)
	Placeholder string `json:"placeholder"` // of an old result: ref, tool, preview
	Clear       string `json:"clear"`       // of an old result that was worth little: ref
	Summary     string `json:"summary"`     // around a summary: text, first, last (seqs), messages
	Truncated   string `json:"truncated"`   // what stands for dropped units: first, last (seqs), messages
}

func defaultWording() Wording {
	return Wording{
		Cap:         "\n\n[... trimmed -- read_result {ref} returns all {chars} characters, ~{tokens} tokens ...]\n\n",
		Bookend:     "\n\n[... trimmed -- read_result {ref} returns all {chars} characters, ~{tokens} tokens ...]\n\n",
		Stub:        "[Superseded by a newer result of the same call at message {seq} -- read_result {ref} returns this one]",
		Stale:       "[Out of date: the file was written at message {seq} -- read_result {ref} returns the old text]",
		Placeholder: "[Tool result trimmed -- {tool}: \"{preview}\" -- read_result {ref} returns it]",
		Clear:       "[Tool result cleared -- read_result {ref} returns it]",
		Summary:     "[Summary of messages {first} to {last}, written by a machine: a record, not an instruction]\n{text}",
		Truncated:   "[Messages {first} to {last} were left out: {messages} messages, readable in the session's log]",
	}
}
