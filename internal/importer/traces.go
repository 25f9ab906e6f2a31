package importer

import (
	"slices"
	"time"
)

// traceLog is what a trace of a program is read from: the calls of a model in it, each with all messages that the model
// was given, and its answer. They are put together as a log of requests is. What the program as a whole was given and
// answered counts only for a trace in which no model was called.
type traceLog struct {
	file  *File
	calls []exchange
	roots []exchange
}

// exchange is a record of something that was given an input and answered with an output.
type exchange struct {
	entry
	trace  string // id of the trace, "" if the record is none of a trace
	kind   string // under which it is counted where it is not read
	input  []byte
	output []byte
	at     time.Time
}

// finish appends the conversations to the file. Records may be listed in any order: the one that began first counts
// first.
func (l *traceLog) finish(id string) {
	traced := map[string]bool{}
	for _, x := range l.calls {
		traced[x.trace] = true
	}
	for _, x := range l.roots {
		if x.trace != "" && traced[x.trace] {
			l.file.count(x.entry, skipped(x.kind))
		} else {
			traced[x.trace] = x.trace != ""
			l.calls = append(l.calls, x)
		}
	}
	slices.SortStableFunc(l.calls, func(a, b exchange) int { return a.at.Compare(b.at) })
	r, at := newRequests(l.file), map[int]time.Time{}
	for _, x := range l.calls {
		t, err := l.file.transcript(x)
		l.file.count(x.entry, err)
		if err == nil {
			r.take(x.line, t)
			at[x.line] = x.at
		}
	}
	r.finish(id, at)
}

// transcript reads the two sides of an exchange as messages of one format.
func (f *File) transcript(x exchange) (transcript, error) {
	d := f.newDraft(nil)
	d.line = x.line
	in, out := newSide(d, "input"), newSide(d, "output")
	if err := in.read(x.input, "user"); err != nil {
		return transcript{}, err
	}
	if err := out.read(x.output, "assistant"); err != nil {
		if len(in.said) == 0 {
			return transcript{}, err
		}
		f.count(entry{}, skipped("answer that cannot be read"))
		d.note("the answer was left out: %v", err)
	}
	if len(in.said)+len(out.said) == 0 {
		return transcript{}, skipped(x.kind + " without messages")
	}
	format := formatOf(in, out)
	messages, err := in.messages(format)
	if err != nil {
		return transcript{}, err
	}
	reply, err := out.messages(format)
	if err != nil {
		return transcript{}, err
	}
	t := transcript{format: format, messages: messages, reply: reply}
	if repeats(t) {
		t.messages, t.reply = reply, nil
	}
	return t, nil
}

// repeats reports whether an answer begins with all messages of the input: a graph answers with its whole state.
func repeats(t transcript) bool {
	if len(t.messages) == 0 || len(t.reply) <= len(t.messages) {
		return false
	}
	for i, body := range t.messages {
		role, all := statements(t.format, body)
		again, same := statements(t.format, t.reply[i])
		if role != again || !slices.Equal(all, same) {
			return false
		}
	}
	return true
}
