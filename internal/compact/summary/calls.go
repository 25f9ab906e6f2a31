package summary

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
)

// What stands in an entry between a call and what came of it, and between a file and its use. keyOf cuts there.
const (
	outcome = " ⇒ "
	use     = " -- "
)

// windowBytes of a result's beginning and as many of its end are looked at; the rest is a ref away.
const windowBytes = 4096

// call is what a result answers.
type call struct {
	operation string
	subject   string // tool and what it is called for
	paths     []string
}

func (d *draft) call(m Message, p Part) {
	c := call{operation: resource.OperationOfCall("common", p.Tool, []byte(p.Text))}
	c.paths = resource.Paths(c.operation, []byte(p.Text))
	c.subject = label(p.Tool) + ": " + subject(p.Text)
	d.calls[p.CallID] = c
	d.list(m.Seq, p)
}

// subject returns what a call is for, on one short line: the command, or else all arguments.
func subject(arguments string) string {
	var object struct{ Command, Cmd, Script json.RawMessage }
	if strings.Contains(arguments, "\"c") || strings.Contains(arguments, "\"script") {
		if json.Unmarshal([]byte(arguments), &object) == nil {
			for _, value := range []json.RawMessage{object.Command, object.Cmd, object.Script} {
				if words := words(value); words != "" {
					arguments = words
					break
				}
			}
		}
	}
	return clip(collapse(clean(head(arguments, windowBytes))), subjectChars)
}

// words returns a JSON string, or a list of them as a command line.
func words(value json.RawMessage) string {
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

// result takes up what came of a call: a file read or written, an error, an error that is solved now, or another
// outcome.
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
	if p.Failed || fails(c, text) {
		d.sections[calls].drop(c.subject)
		d.sections[failures].put(c.subject, at(m.Seq, c.subject+outcome+complaint(text)+ref))
		return
	}
	if !marker {
		d.solve(m.Seq, c)
	}
	if aboutFiles {
		if verb == "read" {
			verb += ref // what a write answers is not worth bringing back
		}
		d.files(m.Seq, c.paths, verb)
		return
	}
	d.sections[calls].put(c.subject, at(m.Seq, c.subject+outcome+told(c, text)+ref))
}

// solve notes that what failed before has succeeded.
func (d *draft) solve(seq int64, c call) {
	if failure, ok := d.sections[failures].drop(c.subject); ok {
		d.sections[solved].put(c.subject, failure+", solved at "+strconv.FormatInt(seq, 10))
	}
}

var fileUse = map[string]string{"file_read": "read", "view_file": "read", "file_write": "written"}

// files notes what was done to each file last; that it was written outlives that it was read.
func (d *draft) files(seq int64, paths []string, done string) {
	for _, path := range paths {
		path = clip(collapse(clean(path)), subjectChars)
		now := at(seq, path+use+done)
		if before, ok := d.sections[files].drop(path); ok && strings.Contains(before, use+"written") && done != "written" {
			now = before
		}
		d.sections[files].put(path, now)
	}
}

var refs = regexp.MustCompile(`r[0-9]+\.[0-9]+-[0-9a-f]{4}\b`)

// refOf returns the ref of a result, in brackets, and whether its text is only the marker that stands for it.
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
