package summary

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/failure"
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
	operation string
	subject   string // the tool and the purpose of the call
	paths     []string
}

// call records a call, and the to-dos that it may write.
func (d *draft) call(m Message, p Part) {
	c := call{operation: resource.OperationOfCall("common", p.Tool, []byte(p.Text))}
	c.paths = resource.Paths(c.operation, []byte(p.Text))
	c.subject = label(p.Tool) + ": " + subject(p.Text)
	d.calls[p.CallID] = c
	d.list(m.Seq, p)
}

// subject returns the purpose of a call on one short line: the command, or else all arguments.
func subject(arguments string) string {
	var object struct{ Command, Cmd, Script json.RawMessage }
	if strings.Contains(arguments, "\"c") || strings.Contains(arguments, "\"script") {
		if json.Unmarshal([]byte(arguments), &object) == nil {
			command := cmp.Or(commandLine(object.Command), commandLine(object.Cmd), commandLine(object.Script))
			arguments = cmp.Or(command, arguments)
		}
	}
	return clip(collapse(clean(head(arguments, windowBytes))), subjectChars)
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

// result records the outcome of a call: a file read or written, an error, a solved error, or another outcome.
func (d *draft) result(m Message, p Part) {
	c, ok := d.calls[p.CallID]
	if !ok {
		c = call{operation: resource.OperationOfCall("common", p.Tool, nil), subject: label(p.Tool) + ": "}
	}
	ref, marker := refOf(p)
	verb, aboutFiles := fileUse[c.operation]
	aboutFiles = aboutFiles && len(c.paths) > 0
	text := ""
	if !marker && (p.Failed || c.runs() || !aboutFiles) {
		text = clean(window(p.Text))
	}
	if p.Failed || failure.Shows([]byte(text), c.runs(), nil) {
		d.sections[calls].drop(c.subject)
		d.sections[failures].put(c.subject, at(m.Seq, c.subject+outcome+complaint(text)+ref))
		return
	}
	if !marker {
		if failed, ok := d.sections[failures].drop(c.subject); ok {
			d.sections[solved].put(c.subject, failed+", solved at "+strconv.FormatInt(m.Seq, 10))
		}
	}
	if aboutFiles {
		if verb == "read" {
			verb += ref // the result of a write is not worth retrieving
		}
		d.files(m.Seq, c.paths, verb)
		return
	}
	d.sections[calls].put(c.subject, at(m.Seq, c.subject+outcome+lineOf(c, text)+ref))
}

var fileUse = map[string]string{"file_read": "read", "view_file": "read", "file_write": "written"}

// files records the last use of each file; a read does not replace a write.
func (d *draft) files(seq int64, paths []string, done string) {
	for _, path := range paths {
		path = clip(collapse(clean(path)), subjectChars)
		entry := at(seq, path+use+done)
		before, _ := d.sections[files].drop(path)
		if strings.Contains(before, use+"written") && done != "written" {
			entry = before
		}
		d.sections[files].put(path, entry)
	}
}

var refs = regexp.MustCompile(`r[0-9]+\.[0-9]+-[0-9a-f]{4}\b`)

// refOf returns the ref of a result, in brackets, and whether the text is only the marker that replaced the result.
func refOf(p Part) (ref string, marker bool) {
	if ref = p.Ref; ref == "" && len(p.Text) < windowBytes {
		ref = refs.FindString(p.Text)
	}
	if ref == "" {
		return "", false
	}
	bracketed := strings.HasPrefix(p.Text, "[") && strings.HasSuffix(p.Text, "]")
	return " (" + label(ref) + ")", bracketed && strings.Contains(p.Text, ref)
}
