package compact

import (
	"crypto/sha256"
	"strings"

	"github.com/varve-dev/varve/internal/compact/resource"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// subject identifies what a call is about, so that stages can compare calls. The result of a call has the call's
// subject.
type subject struct {
	tool     string
	does     does
	identity identity // equal for calls that ask for the same thing; zero for calls that ask for nothing
	resource string   // a name of that thing, to be shown
	detail   string   // what else distinguishes it, for reports
	paths    []string // of the files that the call reads or writes
}

// does is an operation by its index in policy.Operations.
type does uint8

// operation returns the operation's name.
func (d does) operation() policy.Operation { return policy.Operations[d] }

func (d does) reads() bool {
	return d.operation() == policy.ViewFile || d.operation() == policy.FileRead
}
func (d does) writes() bool { return d.operation() == policy.FileWrite }
func (d does) runs() bool {
	return d.operation() == policy.CommandExecution || d.operation() == policy.TestExecution
}

// identity is a digest.
type identity [16]byte

// partReader reads calls and results out of messages, as a policy compares them. Each call reuses its buffers.
type partReader struct {
	policy              *policy.Policy
	messages            wire.Reader
	maxArgument         int // shorter arguments are never omitted
	unquoted, canonical []byte
	known               map[string]does // operations of tools that the arguments do not change
}

func newPartReader(p *policy.Policy) *partReader {
	return &partReader{policy: p, maxArgument: maxArgumentBytes(p), known: map[string]does{}}
}

// giantArgument is the size above which arguments may be omitted at the hard limit, whatever else the policy keeps.
const giantArgument = 8000

// maxArgumentBytes returns the size above which an argument may be omitted, a very large one if none may.
func maxArgumentBytes(p *policy.Policy) int {
	over := 1 << 40
	if p.Dedupe.Enabled && p.Dedupe.Arguments {
		over = p.Dedupe.ArgumentBytes
	}
	if p.Arguments.Enabled {
		over = min(over, p.Arguments.MinBytes)
	}
	if p.Protect.Yields {
		over = min(over, giantArgument)
	}
	return over
}

func (r *partReader) subject(body []byte, at *wire.Part) subject {
	s := subject{tool: at.Name}
	sent := sent{reader: r, value: at.Value.Of(body)}
	s.does = r.does(at.Name, &sent)
	if r.policy.Summarise.LinesRatio > 0 && (s.does.reads() || s.does.writes()) {
		s.paths = resource.Paths(string(s.does.operation()), sent.text())
	}
	if r.policy.Dedupe.Enabled {
		r.identify(&s, &sent)
	}
	return s
}

// sent has a call's arguments as they were sent: as JSON, or as a string of what should be JSON.
type sent struct {
	reader  *partReader
	value   []byte
	decoded bool
}

// text decodes the arguments. The bytes are valid until the reader's next call.
func (a *sent) text() []byte {
	if len(a.value) == 0 || a.value[0] != '"' {
		return a.value
	}
	if !a.decoded {
		a.reader.unquoted, _ = rawjson.Unquote(a.reader.unquoted[:0], a.value)
		a.decoded = true
	}
	return a.reader.unquoted
}

// largeArguments is the size above which arguments are compared as they were sent, so that equal ones in another order
// count as different: large arguments are mostly what a call writes, and sorting them costs more than it finds.
const largeArguments = 512

// appendComparable appends a form of the arguments that is equal for equal arguments.
func (a *sent) appendComparable(dst []byte) []byte {
	if len(a.value) > largeArguments {
		return append(dst, a.value...)
	}
	text := a.text()
	if len(text) == 0 || rawjson.Check(text, rawjson.Limits{Depth: session.MaxJSONDepth}) != nil {
		return append(dst, text...)
	}
	return rawjson.AppendCanonical(dst, text)
}

// does returns the operation of a call by the tenant's own table, then by the well-known one.
func (r *partReader) does(tool string, a *sent) does {
	if d, ok := r.known[tool]; ok {
		return d
	}
	operation, own := r.policy.Tools.Operations[tool]
	if own {
		r.known[tool] = doesOf(string(operation))
		return r.known[tool]
	}
	table := string(r.policy.Tools.Table)
	if resource.ArgumentsTell(table, tool) {
		return doesOf(resource.OperationOfCall(table, tool, a.text()))
	}
	r.known[tool] = doesOf(resource.OperationOf(table, tool))
	return r.known[tool]
}

func doesOf(operation string) does {
	for i, known := range policy.Operations {
		if string(known) == operation {
			return does(i)
		}
	}
	return does(len(policy.Operations) - 1)
}

// identify sets a digest of what a call asks for, and names of that to show; nothing if the call has no identity.
func (r *partReader) identify(s *subject, a *sent) {
	name, detail := "", ""
	r.canonical = append(append(r.canonical[:0], s.tool...), 0)
	switch rule := &r.policy.Dedupe; rule.Identity {
	case policy.ByResource:
		key, ok := resource.Identify(string(s.does.operation()), s.tool, a.text())
		if !ok {
			return
		}
		r.canonical = append(r.canonical[:0], key.Comparable()...)
		name, detail = key.Primary, strings.Join(key.Secondary, ":")
	case policy.ByFields:
		key, ok := resource.Fields(s.tool, rule.Fields[s.tool], rule.ToolOnly, a.text())
		if !ok {
			return
		}
		r.canonical = append(r.canonical[:0], key...)
	default:
		r.canonical = a.appendComparable(r.canonical)
	}
	if name == "" && len(s.paths) > 0 {
		name = s.paths[0]
	}
	if r.policy.Dedupe.Redact {
		name, detail = mask(name), mask(detail)
	}
	sum := sha256.Sum256(r.canonical)
	s.identity = identity(sum[:16])
	s.resource, s.detail = name, detail
}

// mask returns a name without secrets.
func mask(name string) string { return resource.Mask(resource.Redact(name)) }
