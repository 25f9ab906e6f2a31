package importer

import (
	"bytes"
	"encoding/json"
	"iter"
)

// entry is one record: a value on a line or an element of a list. Lines and positions count from 1.
type entry struct {
	object
	raw  []byte
	line int
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

// entries yields the objects of JSON lines and counts them as records. A line that is not JSON from end to end is
// rejected as a whole, and so is a value that is no object.
func (f *File) entries(data []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for n, line := range lines(data) {
			found, err := values(line)
			if err != nil {
				f.Report.Lines++
				f.reject(n, line, "not JSON: %s", err)
				continue
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

// elements yields the objects of a list and counts all of its elements as records.
func (f *File) elements(list [][]byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for i, raw := range list {
			if e, ok := f.entry(i+1, raw); ok && !yield(e) {
				return
			}
		}
	}
}

// entry counts a record, and rejects one that is no object.
func (f *File) entry(line int, raw []byte) (entry, bool) {
	f.Report.Lines++
	e := entry{object: parseObject(raw), raw: raw, line: line}
	if e.object == nil {
		f.reject(line, raw, "not a JSON object")
	}
	return e, e.object != nil
}

// records yields the objects of a file in any shape: the elements of its array, its only value, or the values on its
// lines. They are counted as records.
func (f *File) records(data []byte) iter.Seq[entry] {
	if !json.Valid(data) {
		return f.entries(data)
	}
	if list := parseArray(data); list != nil {
		return f.elements(list)
	}
	return f.elements([][]byte{data})
}

// runs yields the objects of a file that records runs, each a conversation. The records that they hold are counted, not
// the runs.
func (f *File) runs(data []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for run := range f.records(data) {
			f.Report.Lines--
			if !yield(run) {
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

// within returns the runs that a value has in a list, or the value itself if it has no such list.
func within(value entry, member string) []entry {
	list := parseArray(value.object[member])
	if member == "" || list == nil {
		return []entry{value}
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
