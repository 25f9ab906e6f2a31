package summary

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// The separators in an entry between a call and its outcome, and between a file and its use. keyOf splits there.
const (
	outcome = " ⇒ "
	use     = " -- "
)

// windowBytes is how much of a result's beginning, and of its end, is read.
const windowBytes = 4096

// call is a tool call whose result may follow.
type call struct {
	tool      string // in lower case
	operation string
	subject   string // the tool and the purpose of the call
	paths     []string
	change    string // of an edit: a line that tells what it changes
	command   command
}

// call records a call, and the to-dos that it may write.
func (d *draft) call(m Message, p Part) {
	c := d.reader.call(p)
	d.calls[p.CallID] = c
	d.worked = true
	d.list(m.Seq, c, p.Text)
}

// commandText returns the command in a call's arguments, or else all arguments.
func commandText(arguments string) string {
	var object struct{ Command, Cmd, Script json.RawMessage }
	if mayHaveCommand(arguments) {
		if json.Unmarshal([]byte(arguments), &object) == nil {
			command := cmp.Or(commandLine(object.Command), commandLine(object.Cmd), commandLine(object.Script))
			arguments = cmp.Or(command, arguments)
		}
	}
	return arguments
}

// mayHaveCommand reports whether arguments may have such a member. Most that are long have none, and are not parsed.
func mayHaveCommand(arguments string) bool {
	if !strings.Contains(arguments, "\"c") && !strings.Contains(arguments, "\"script") {
		return false
	}
	for rest := arguments; ; {
		i := strings.IndexByte(rest, '"')
		if i < 0 {
			return strings.Contains(arguments, `\u`)
		}
		rest = rest[i+1:]
		for _, name := range []string{"command\"", "cmd\"", "script\"", "ſcript\""} {
			if len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name) {
				return true
			}
		}
	}
}

// commandLine returns a JSON string, or the strings of a JSON list with spaces between them.
func commandLine(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	var one string
	var many []string
	if json.Unmarshal(value, &one) == nil {
		return one
	}
	if json.Unmarshal(value, &many) == nil {
		return strings.Join(many, " ")
	}
	return ""
}

// result records the outcome of a call: a file read or written, an error, a solved error, a commit, another outcome, or
// what the user said to it.
func (d *draft) result(m Message, p Part) {
	c, ok := d.calls[p.CallID]
	if !ok {
		c = call{operation: resource.OperationOfCall("common", p.Tool, nil), subject: label(p.Tool) + ":"}
	}
	if words, ok := SaidInResult(p.Text); ok {
		d.answered(m.Seq, c, clean(words))
		return
	}
	ref, marker := refOf(p)
	aboutFiles := fileUse[c.operation] != "" && len(c.paths) > 0
	var of output
	if !marker && (p.Failed || c.runs() || !aboutFiles) {
		of = d.reader.output(p.Text, c.runs())
	}
	if p.Failed || of.failed {
		d.failed(m.Seq, c, of.text, ref)
		return
	}
	if !marker {
		d.solve(m.Seq, c)
	}
	switch {
	case aboutFiles:
		d.used(m.Seq, c, ref)
	case c.command.reverts() && !marker:
		for _, path := range c.command.arguments {
			d.sections[files].drop(path)
		}
	case len(c.command.writes) > 0 && !c.command.commits && !marker:
		c.paths = c.command.writes
		d.inFlight(m.Seq, c)
	case c.command.commits && !marker:
		d.committed(m.Seq, lineOf(c, of.text)+ref)
	case c.plans():
		d.created(m.Seq, c, of.text)
	case !c.looks() && c.subject != nobody:
		d.sections[calls].put(note{key: c.subject, seq: m.Seq, text: c.subject + outcome + lineOf(c, of.text) + ref})
	}
}

// answered records that the user refused a call, or answered its question.
func (d *draft) answered(seq int64, c call, words string) {
	const spoken = 8 // the worth of the user's word about a call
	words = clip(collapse(words), saidChars)
	text := "The user refused " + c.key()
	if strings.HasPrefix(words, `"`) {
		text = "The user answered"
	}
	if words != "" {
		text += outcome + words
		if !d.wordsKept {
			d.demand(seq, words)
		}
	}
	d.sections[findings].put(note{key: text, seq: seq, text: text, worth: spoken})
	d.sections[calls].drop(c.subject)
	d.sections[failures].drop(c.subject)
	if words != "" {
		d.follow(seq, words)
	}
}

// failed records a call that failed, unless it only looked for something: then the failure is no work that is open.
func (d *draft) failed(seq int64, c call, text, ref string) {
	d.sections[calls].drop(c.subject)
	if c.looks() || c.subject == nobody || fileUse[c.operation] == "read" {
		return
	}
	key := c.key()
	d.sections[failures].put(note{key: key, seq: seq, text: key + outcome + complaint(text) + ref})
	if open := d.sections[failures].all(); len(open) > maxOpen {
		d.pass(open[0], "")
	}
}

// maxOpen is how many errors count as open at once.
const maxOpen = 24

// looks reports whether a call only looks for something.
func (c call) looks() bool {
	return c.command.looks || c.operation == "search" || c.operation == "list_dir"
}

// key returns the key of a call's failure: an edit of a file that succeeds at last solves all before.
func (c call) key() string {
	tool, _, _ := strings.Cut(c.subject, ":")
	if fileUse[c.operation] == wrote && len(c.paths) > 0 {
		return tool + ": " + clip(collapse(clean(c.paths[0])), subjectChars)
	}
	return c.subject
}

// solve removes the failures that the success of a call solves: those of the same call, of edits of the same file, and
// of commands that it includes.
func (d *draft) solve(seq int64, c call) {
	if len(d.sections[failures].at) == 0 {
		return
	}
	solution := ", solved at " + strconv.FormatInt(seq, 10)
	for _, e := range d.sections[failures].all() {
		same := e.key == c.key()
		if !same && !c.command.includes(commandOf(withoutTool(e.key))) {
			continue
		}
		if fileUse[c.operation] == "" {
			d.pass(e, solution)
		} else {
			d.sections[failures].drop(e.key)
		}
	}
}

// withoutTool returns the purpose in a call's subject.
func withoutTool(subject string) string {
	_, purpose, _ := strings.Cut(subject, ": ")
	return purpose
}

// nobody is the subject of a call about which nothing is known.
var nobody = label("") + ":"

var fileUse = map[string]string{"file_read": "read", "view_file": "read", "file_write": wrote}

// used records the use of files: those written are in flight, those read are listed unless names are kept elsewhere.
func (d *draft) used(seq int64, c call, ref string) {
	if fileUse[c.operation] == wrote {
		d.inFlight(seq, c)
		return
	}
	if d.wordsKept {
		return
	}
	for _, path := range c.paths {
		path = clip(collapse(clean(path)), subjectChars)
		if _, ok := d.sections[files].at[path]; !ok {
			d.sections[reads].put(note{key: path, seq: seq, text: path + use + "read" + ref})
		}
	}
}

// refOf returns the ref of a result, in brackets, and whether the text is only the marker that replaced the result. A
// ref in the text alone is what a tool has written.
func refOf(p Part) (ref string, marker bool) {
	if p.Ref == "" {
		return "", false
	}
	bracketed := strings.HasPrefix(p.Text, "[") && strings.HasSuffix(p.Text, "]")
	return " (" + label(p.Ref) + ")", bracketed && strings.Contains(p.Text, p.Ref)
}
