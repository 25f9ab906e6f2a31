package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// entry is one record: a value on a line or an element of a list. Lines and positions count from 1.
type entry struct {
	object
	raw  []byte
	line int
}

// time returns when the record was made, the zero time if it does not say so.
func (e entry) time() time.Time {
	at, err := time.Parse(time.RFC3339, e.text("timestamp"))
	if err != nil {
		return time.Time{}
	}
	return at
}

// layout is where a file of runs, each a conversation, has its records. The empty one is that of a file whose values
// are all records of one conversation.
type layout struct {
	within string   // the member in which a value lists its runs, "" if it is one
	lists  []string // paths to the records of a run: the first that is not empty counts
	bare   bool     // whether a value without such a list is a record itself
	pairs  bool     // whether a list may have arrays of records among its records
	prompt string   // the member of a run that is its system prompt, "" for none
}

// readRuns reads a file as the layout of its source describes it. The values that are records themselves are one
// conversation.
func (f *File) readRuns(id string, data []byte) error {
	layout := f.kind.runs
	var bare []entry
	for value := range f.records(data) {
		for run := range f.runs(value) {
			list, ok := layout.records(run.object)
			switch {
			case ok:
				f.readRun(id, run.object, list)
			case layout.bare || layout.lists == nil:
				bare = append(bare, run)
			default:
				f.count(run, fmt.Errorf("no list %q", layout.lists[len(layout.lists)-1]))
			}
		}
	}
	d := f.newDraft(nil)
	d.records(slices.Values(f.branch(bare, "")))
	d.finish(id)
	return nil
}

// readRun appends the conversations that the records of a run make.
func (f *File) readRun(id string, run object, list [][]byte) {
	d := f.newDraft(run)
	if prompt := f.kind.runs.prompt; prompt != "" && nonEmpty(run[prompt]) != nil {
		d.line = 1
		d.add(message("system", run[prompt]))
	}
	leaf := ""
	if t := f.kind.tree; t != nil && t.leaf != "" {
		leaf = run.text(t.leaf)
	}
	d.records(slices.Values(f.branch(slices.Collect(f.elements(list)), leaf)))
	d.finish(id)
}

// runs yields the runs that a value has in a list, or the value itself if it has no such list.
func (f *File) runs(value entry) iter.Seq[entry] {
	within := f.kind.runs.within
	if list := parseArray(value.object[within]); within != "" && list != nil {
		return f.elements(list)
	}
	return func(yield func(entry) bool) { yield(value) }
}

// records returns the records of a run, and whether it has a list of them.
func (l layout) records(run object) (list [][]byte, ok bool) {
	for _, path := range l.lists {
		found := parseArray(run.at(path))
		if len(found) > 0 {
			return found, true
		}
		ok = ok || found != nil
	}
	return nil, ok
}

// records yields the objects of a file in any shape: the elements of its array, its only value, or the values on its
// lines. Everything else is rejected.
func (f *File) records(data []byte) iter.Seq[entry] {
	if !json.Valid(data) {
		return f.linesOf(data)
	}
	if list := parseArray(data); list != nil {
		return f.elements(list)
	}
	return f.elements([][]byte{bytes.TrimSpace(data)})
}

// linesOf yields the objects of JSON lines. A line that is not JSON from end to end is rejected as a whole.
func (f *File) linesOf(data []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for n, line := range lines(data) {
			found, err := values(line)
			if err != nil {
				f.count(entry{raw: line, line: n}, fmt.Errorf("not JSON: %w", err))
			}
			if len(found) > 1 {
				f.note(n, "%d JSON values run together on one line were read one by one", len(found))
			}
			for _, raw := range found {
				if e, ok := f.entry(n, raw); ok && !yield(e) {
					return
				}
			}
		}
	}
}

// elements yields the objects of a list.
func (f *File) elements(list [][]byte) iter.Seq[entry] {
	if f.kind.runs.pairs {
		list = withoutPairs(list)
	}
	return func(yield func(entry) bool) {
		for i, raw := range list {
			if e, ok := f.entry(i+1, raw); ok && !yield(e) {
				return
			}
		}
	}
}

// withoutPairs returns a list with the elements of the arrays in it in their places.
func withoutPairs(list [][]byte) [][]byte {
	var all [][]byte
	for _, raw := range list {
		if pair := parseArray(raw); pair != nil {
			all = append(all, pair...)
		} else {
			all = append(all, raw)
		}
	}
	return all
}

// entry returns a record, and rejects one that is no object.
func (f *File) entry(line int, raw []byte) (e entry, ok bool) {
	e = entry{object: parseObject(raw), raw: raw, line: line}
	if e.object == nil {
		f.count(e, errors.New("not a JSON object"))
	}
	return e, e.object != nil
}

// lines yields the lines that are not blank with their numbers. Only \n ends a line: other separators occur inside
// JSON strings.
func lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		n := 0
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			n++
			if len(bytes.TrimSpace(line)) > 0 && !yield(n, line) {
				return
			}
		}
	}
}
