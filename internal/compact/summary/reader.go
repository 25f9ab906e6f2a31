package summary

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/varve-dev/varve/internal/compact/failure"
	"github.com/varve-dev/varve/internal/compact/resource"
)

// Reader writes summaries as Extract does. It reads each text once, however often it is in what is summarised. The zero
// Reader is ready to use.
type Reader struct {
	calls   map[Part]call
	outputs map[outputOf]output
	spoken  map[string]spoken
	demands map[string][]note
}

// call reads a call.
func (r *Reader) call(p Part) call { return once(&r.calls, p, readCall) }

// output reads the text of a result: of a command, if the call runs one.
func (r *Reader) output(text string, runs bool) output {
	return once(&r.outputs, outputOf{text, runs}, readOutput)
}

// spokenIn reads a text of the agent.
func (r *Reader) spokenIn(text string) spoken { return once(&r.spoken, text, readSpoken) }

// demandsIn returns the demands in a text, and its statements with exact values, without the seq of its message.
func (r *Reader) demandsIn(text string) []note { return once(&r.demands, text, readDemands) }

// once returns what read finds, which it is asked for once.
func once[K comparable, V any](known *map[K]V, key K, read func(K) V) V {
	found, ok := (*known)[key]
	if !ok {
		if *known == nil {
			*known = map[K]V{}
		}
		found = read(key)
		(*known)[key] = found
	}
	return found
}

func readCall(p Part) call {
	sent := unsafe.Slice(unsafe.StringData(p.Text), len(p.Text)) // which is only read
	c := call{tool: strings.ToLower(p.Tool), operation: resource.OperationOfCall("common", p.Tool, sent)}
	if fileUse[c.operation] != "" {
		c.paths = resource.Paths(c.operation, sent)
	}
	line := commandText(p.Text)
	c.subject = strings.TrimSuffix(label(p.Tool)+": "+clip(collapse(clean(head(line, windowBytes))), subjectChars), " ")
	if c.runs() {
		c.command = commandOf(line)
	} else if fileUse[c.operation] == wrote {
		c.change = changeOf(p.Text)
	}
	return c
}

// outputOf is the text of a result; output has its beginning and end, and whether they show that the tool failed.
type outputOf struct {
	text string
	runs bool
}

type output struct {
	text   string
	failed bool
}

func readOutput(of outputOf) output {
	text := clean(window(of.text))
	return output{text, failure.Shows([]byte(text), of.runs, nil)}
}

// spoken is what the agent says itself in a text, and its statements there.
type spoken struct {
	text       string
	statements []statement
}

func readSpoken(text string) (s spoken) {
	if s.text = Unquoted(clean(text)); strings.TrimSpace(s.text) != "" {
		s.statements = slices.Collect(statements(s.text))
	}
	return s
}

func readDemands(text string) (list []note) {
	for s := range sentences(Unquoted(text)) {
		if s = clip(s, sentenceChars); isOwn(s) {
			continue
		}
		if worth := demanded(s); worth >= worthKeeping {
			list = append(list, note{key: s, text: s, worth: worth})
		}
	}
	return list
}
