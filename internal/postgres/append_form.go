package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// appendForm is what a statement of appends has to say. PostgreSQL prepares every term of a statement anew each time
// that it runs, which is most of what an append costs: so the statement says no more than its appends need. In its
// file, the lines from one with "-- if" and a word to the next such line are only in forms of which that holds.
type appendForm struct {
	one      bool // there is one message
	keyed    bool // there is an Idempotency-Key or, of several appends, a client id
	measured bool // there is a usage or an exact count
	used     bool // there is a usage that counts its input, and nothing else is measured
	locked   bool // the caller holds the session's lock and decides what the statement alone cannot
}

func (f appendForm) holds(word string) bool {
	switch word {
	case "any":
		return true
	case "one":
		return f.one
	case "more":
		return !f.one
	case "keyed":
		return f.keyed
	case "measured":
		return f.measured || f.used
	case "free":
		return !f.locked
	}
	panic("no form of an append is " + word)
}

// lines returns the lines of a statement that a form has.
func (f appendForm) lines(text string) string {
	var kept strings.Builder
	said := true
	for line := range strings.Lines(text) {
		if word, found := strings.CutPrefix(line, "-- if "); found {
			said = f.holds(strings.TrimSpace(word))
		} else if said {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// appendStatement is a statement of appends in a form, with the places of its parameters in the list of all.
type appendStatement struct {
	sql    string
	places []int
}

// args returns the parameters.
func (s *appendStatement) args(all []any) []any {
	args := make([]any, len(s.places))
	for i, place := range s.places {
		args[i] = all[place]
	}
	return args
}

// appendSQL are the statements of one append, and appendManySQL those of several.
var (
	appendSQL     = sync.OnceValue(func() appendForms { return readForms("append", "@", appendNames) })
	appendManySQL = sync.OnceValue(func() appendForms { return readForms("append_many", "a.", appendManyNames) })
)

type appendForms map[appendForm]*appendStatement

// readForms reads a statement, in which of stands before the names of what an append has.
func readForms(name, of string, names []string) appendForms {
	all := appendForms{}
	limits := []string{
		"{outdated}", strings.ReplaceAll(outdatedSQL, "$1", "@tenant"), "{named}", namedSQL,
		"{max_messages}", fmt.Sprint(session.MaxSessionMessages), "{max_bytes}", fmt.Sprint(session.MaxTailBytes),
	}
	for i := range 1 << 5 {
		f := appendForm{one: i&1 > 0, keyed: i&2 > 0, measured: i&4 > 0, used: i&8 > 0, locked: i&16 > 0}
		if f.locked && (f.one || f.keyed) || f.used && f.measured {
			continue
		}
		measured, armed := f.measures()
		terms := append([]string{
			"{measured}", strings.ReplaceAll(measured, "@", of), "{armed}", strings.ReplaceAll(armed, "@", of),
		}, limits...)
		all[f] = numbered(names, strings.NewReplacer(terms...).Replace(f.lines(statement(name))))
	}
	return all
}

// measures returns what an append sets of the measures, and the tokens from which the session is due with them.
func (f appendForm) measures() (set, armed string) {
	armedWith := func(calibration, unseen string) string {
		return due.ArmedSQL(calibration, unseen, `s.last_seq + @count`, `s.tail_bytes + @bytes + s.checkpoint_size`,
			session.EngineVersion)
	}
	switch {
	case f.used:
		return measuredUse, armedWith(`1`, reported)
	case f.measured:
		return measured, armedWith(newCalibration, newUnseen)
	}
	return "", armedWith(`s.calibration`, `s.unseen_tokens`)
}

// numbered replaces the named parameters of a statement by their numbers, once and not at each call as pgx.NamedArgs
// would.
func numbered(names []string, sql string) *appendStatement {
	s := &appendStatement{}
	s.sql = parameter.ReplaceAllStringFunc(sql, func(name string) string {
		place := slices.Index(names, name[1:])
		if place < 0 {
			panic("a statement has a parameter " + name + " that is not in its list")
		}
		if !slices.Contains(s.places, place) {
			s.places = append(s.places, place)
		}
		return "$" + strconv.Itoa(slices.Index(s.places, place)+1)
	})
	return s
}
