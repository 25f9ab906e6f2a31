package importer

import (
	"encoding/json"
	"iter"

	"github.com/varve-dev/varve/internal/session"
)

// runs yields the objects of a file that records runs, each a conversation: the file's only value, the elements of its
// array, or the values on its lines. They are no records, what they hold is; what is no object is one, and rejected.
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

// list is a run's member that should be a list. A run without it is a record of its own, and rejected.
func (f *File) list(run entry, member string) [][]byte {
	list := parseArray(run.object[member])
	if list == nil {
		f.Report.Lines++
		f.reject(run.line, run.raw, "no list %q", member)
	}
	return list
}

// within is the runs that a file's head has in a list, or the run itself if it has no such list.
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

// array is the elements of a file that is one JSON array, nil if it is anything else.
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

// skipped is the error of a record that is no part of the conversation: as what it is counted.
type skipped string

func (s skipped) Error() string { return string(s) }

// convert reads records one by one. read makes the messages that a record says; its error says why there is none.
func (f *File) convert(records iter.Seq[entry], read func(e entry) ([][]byte, error)) []Message {
	var messages []Message
	for e := range records {
		bodies, err := read(e)
		if err != nil {
			f.refuse(e, err)
			continue
		}
		f.Report.Imported++
		for _, body := range bodies {
			messages = append(messages, Message{Body: body, Line: e.line})
		}
	}
	return messages
}

// refuse counts a record that says no message, or rejects it.
func (f *File) refuse(e entry, err error) {
	if kind, ok := err.(skipped); ok {
		f.skip(string(kind))
		return
	}
	f.reject(e.line, e.raw, "%s", err)
}

// add appends a conversation unless it is empty. Another of the same id gets a number behind it.
func (f *File) add(id string, format session.Format, messages []Message) {
	if len(messages) == 0 {
		return
	}
	f.Conversations = append(f.Conversations, Conversation{ID: f.free(id), Format: format, Messages: messages})
}
