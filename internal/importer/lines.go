package importer

import (
	"bytes"
	"iter"
)

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

// entry is one value of JSON lines.
type entry struct {
	object
	raw  []byte
	line int
}

// entries yields the objects of JSON lines and counts them as records. A line that is not JSON from end to end is
// rejected as a whole, and so is a value that is no object.
func (f *File) entries(data []byte) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for n, line := range lines(data) {
			f.Report.Lines++
			found, err := values(line)
			if err != nil {
				f.reject(n, line, "not JSON: %s", err)
				continue
			}
			if len(found) > 1 {
				f.note(n, "%d JSON values run together on one line were read one by one", len(found))
				f.Report.Lines += len(found) - 1
			}
			for _, raw := range found {
				e := entry{object: parseObject(raw), raw: raw, line: n}
				if e.object == nil {
					f.reject(n, raw, "not a JSON object")
				} else if !yield(e) {
					return
				}
			}
		}
	}
}

// skip counts a record that is no part of the conversation.
func (f *File) skip(kind string) { f.Report.Skipped[kind]++ }
