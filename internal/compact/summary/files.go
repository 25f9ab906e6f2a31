package summary

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// What an entry of a file says that was done with it. Edits are listed after "edited: ", with semicolons.
const (
	wrote   = "written"
	edits   = "edited: "
	editSep = "; "
)

// inFlight records that a call wrote files, with what it changed in them.
func (d *draft) inFlight(seq int64, c call) {
	for _, path := range c.paths {
		path = clip(collapse(clean(path)), subjectChars)
		earlierEntry, _ := d.sections[files].drop(path)
		_, done, _ := strings.Cut(earlierEntry.text, path+use)
		d.sections[files].put(note{key: path, seq: seq, text: path + use + changed(done, c)})
		d.sections[reads].drop(path)
	}
}

// changed returns what was done with a file: what was done before, and the change of one more call.
func changed(done string, c call) string {
	const limit = 4
	if c.change == "" {
		return wrote
	}
	first, list, found := strings.Cut(done, edits)
	var all []string
	if found {
		all = strings.Split(list, editSep)
	} else if done == wrote {
		first = wrote + ", then "
	}
	if !slices.Contains(all, c.change) {
		all = append(all, c.change)
	}
	return first + edits + strings.Join(all[max(0, len(all)-limit):], editSep)
}

// committed records a commit: the files in flight are in it.
func (d *draft) committed(seq int64, line string) {
	const limit = 6
	var names []string
	for _, e := range d.sections[files].all() {
		names = append(names, e.key[strings.LastIndexByte(e.key, '/')+1:])
	}
	if len(names) > limit {
		names = append(names[:limit], "…")
	}
	if len(names) > 0 {
		line += " (" + strings.Join(names, ", ") + ")"
	}
	d.sections[files] = notes{}
	for _, e := range d.sections[failures].all() {
		if strings.HasPrefix(commandOf(withoutTool(e.key)).program, "git ") {
			d.pass(e, ", committed at "+strconv.FormatInt(seq, 10))
		}
	}
	d.sections[before].put(note{key: "commit: " + line, seq: seq, text: "commit: " + line})
}

// replacement is a change of a text in the arguments of an edit, with the names of its members in several tools.
type replacement struct {
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
	OldStr    string `json:"old_str"`
	NewStr    string `json:"new_str"`
	OldText   string `json:"oldText"`
	NewText   string `json:"newText"`
	Old       string `json:"old"`
	New       string `json:"new"`
}

// changeOf returns what identifies the change that an edit's arguments describe: the first line of its new text that is
// not in the old one, "" for a call that writes a whole file.
func changeOf(arguments string) string {
	var call struct {
		replacement
		Edits []replacement `json:"edits"`
	}
	if !strings.Contains(arguments, `"new`) || json.Unmarshal([]byte(arguments), &call) != nil {
		return ""
	}
	edit := call.replacement
	if len(call.Edits) > 0 {
		edit = call.Edits[0]
	}
	old := head(cmp.Or(edit.OldString, edit.OldStr, edit.OldText, edit.Old), windowBytes)
	replaced := cmp.Or(edit.NewString, edit.NewStr, edit.NewText, edit.New)
	return cmp.Or(lineNotIn(replaced, old, ""), lineNotIn(old, "", "removed "))
}

// lineNotIn returns the first line of a text with a word that is not in the other text, shortened.
func lineNotIn(text, other, prefix string) string {
	const longest = 60
	for line := range strings.Lines(head(text, windowBytes)) {
		if line = strings.TrimSpace(line); hasLetter(line) && !strings.Contains(other, line) {
			return prefix + clip(strings.ReplaceAll(collapse(clean(line)), editSep, ", "), longest)
		}
	}
	return ""
}

// trimBase removes the directory that all files have in common from the entries, and returns it, "" for none. Otherwise
// it would take most of their room.
func trimBase(entries []note) string {
	const short = 8
	if len(entries) < 2 {
		return ""
	}
	base := entries[0].key
	for _, e := range entries {
		for !strings.HasPrefix(e.key, base) {
			base = base[:strings.LastIndexByte(base[:len(base)-1], '/')+1]
			if len(base) < short {
				return ""
			}
		}
	}
	base = base[:strings.LastIndexByte(base, '/')+1]
	if slices.ContainsFunc(entries, func(e note) bool { return !strings.Contains(e.key[len(base):], "/") }) {
		base = base[:strings.LastIndexByte(strings.TrimSuffix(base, "/"), '/')+1] // agents know a file by two names
	}
	if len(base) < short {
		return ""
	}
	for i := range entries {
		entries[i].text = strings.TrimPrefix(entries[i].text, base)
	}
	return base
}
