package importer

import (
	"encoding/json"
	"iter"

	"github.com/varve-dev/varve/internal/session"
)

// runs yields the objects of a file that records runs, each a conversation: the file's only value, the elements of its
// array, or the values on its lines. The records that they hold are counted, not the runs; a value that is no object is
// counted and rejected.
func (f *File) runs(data []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		if !json.Valid(data) {
			for e := range f.entries(data) {
				f.Report.Lines--
				if !yield(e) {
					return
				}
			}
			return
		}
		values := parseArray(data)
		if values == nil {
			values = [][]byte{data}
		}
		for i, raw := range values {
			run := entry{object: parseObject(raw), raw: raw, line: i + 1}
			if run.object == nil {
				f.Report.Lines++
				f.reject(run.line, raw, "not a JSON object")
			} else if !yield(run) {
				return
			}
		}
	}
}

// list returns a run's member that should be a list. A run without it is counted as a record and rejected.
func (f *File) list(run entry, member string) [][]byte {
	list := parseArray(run.object[member])
	if list == nil {
		f.Report.Lines++
		f.reject(run.line, run.raw, "no list %q", member)
	}
	return list
}

// within returns the runs that a file's head has in a list, or the run itself if it has no such list.
func within(run entry, member string) []entry {
	list := parseArray(run.object[member])
	if list == nil {
		return []entry{run}
	}
	runs := make([]entry, len(list))
	for i, raw := range list {
		runs[i] = entry{object: parseObject(raw), raw: raw, line: i + 1}
	}
	return runs
}

// array returns the elements of a file that is one JSON array, nil if it is anything else.
func array(data []byte) [][]byte {
	if !json.Valid(data) {
		return nil
	}
	return parseArray(data)
}

// elements yields the objects of a list and counts all of them as records.
func (f *File) elements(list [][]byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i, raw := range list {
			f.Report.Lines++
			e := entry{object: parseObject(raw), raw: raw, line: i + 1}
			if e.object == nil {
				f.reject(e.line, raw, "not a JSON object")
			} else if !yield(e) {
				return
			}
		}
	}
}

// skipped is the error of a record that is no part of the conversation: the kind under which it is counted.
type skipped string

func (s skipped) Error() string { return string(s) }

// convert returns the messages that read makes of records; read's error is the reason why there is none.
func (f *File) convert(records iter.Seq[entry], read func(e entry) ([][]byte, error)) (messages []Message) {
	f.each(records, func(e entry) error {
		bodies, err := read(e)
		for _, body := range bodies {
			messages = append(messages, Message{Body: body, Line: e.line})
		}
		return err
	})
	return messages
}

// convertLines returns a source's reader for JSON lines that are one conversation, whose records are read one by one.
func convertLines(format session.Format, read func(e entry) ([][]byte, error)) func(*File, string, []byte) error {
	return func(f *File, id string, data []byte) error {
		f.add(id, format, f.convert(f.entries(data), read))
		return nil
	}
}

// branches are the conversations of one file, in the order in which they begin: the main one and those of its agents.
type branches struct {
	names  []string
	byName map[string][]Message
}

func (b *branches) add(name string, messages ...Message) {
	if b.byName == nil {
		b.byName = map[string][]Message{}
	}
	if b.byName[name] == nil {
		b.names = append(b.names, name)
	}
	b.byName[name] = append(b.byName[name], messages...)
}

// first returns the name of the branch that begins first, "" if there is none.
func (b *branches) first() string {
	if len(b.names) == 0 {
		return ""
	}
	return b.names[0]
}

// addBranches appends every branch as a conversation. The branch named main has the file's id, the others have their
// names behind it.
func (f *File) addBranches(id string, format session.Format, b branches, main, infix string) {
	for _, name := range b.names {
		full := id
		if name != main {
			full = suffixed(id, infix+name)
		}
		f.add(full, format, b.byName[name])
	}
}

// each hands over records one by one; read's error is the reason why one is no part of a conversation.
func (f *File) each(records iter.Seq[entry], read func(e entry) error) {
	for e := range records {
		if err := read(e); err != nil {
			f.refuse(e, err)
			continue
		}
		f.Report.Imported++
	}
}

// refuse counts a record that has no message, or rejects it.
func (f *File) refuse(e entry, err error) {
	if kind, ok := err.(skipped); ok {
		f.skip(string(kind))
		return
	}
	f.reject(e.line, e.raw, "%s", err)
}

// add appends a conversation unless it is empty. A second one of the same id gets a number behind it.
func (f *File) add(id string, format session.Format, messages []Message) {
	if len(messages) == 0 {
		return
	}
	f.Conversations = append(f.Conversations, Conversation{ID: f.free(id), Format: format, Messages: messages})
}
