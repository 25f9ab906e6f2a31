// Package planted measures what writers of summaries keep of facts that were planted in recorded sessions. A session
// is compacted in steps by the product's engine, each time from the checkpoint before, and each fact is looked for in
// the view after twenty more compactions. All writers have the same limit of tokens, and nothing stands beside the
// summary but, in one row, pins.
//
// Start at Measure, which returns a row for each writer, and at Writers. The sentences are in plants.txt, written as
// users and agents write; half of them are held out, so that Extract can be improved with the other half. It is pure.
package planted

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/replay"
)

// How a session is summarised: in steps of about equal tokens, of which the first ones have facts. A fact is looked for
// after that many compactions more than the first that it was in. A step that leaves the view within its target has no
// compaction, so there are more steps than that.
const (
	steps     = 30
	withFacts = 4
	later     = 20
)

// Options say what to measure.
type Options struct {
	MaxTokens int  // of a summary
	MinTokens int  // of a session's log
	Seeds     int  // how often facts are planted in each session
	HeldOut   bool // the half of the sentences that are held out
}

// Standard are the options of the table in the documents.
var Standard = Options{MaxTokens: 1500, MinTokens: 60_000, Seeds: 5}

// Row is what one writer has kept.
type Row struct {
	Writer string
	Kept   map[string]Share // by kind; "" for all
	Tokens int              // of the last view, on average

	Compactions int // of a session, on average
}

// Share is how many facts were kept of how many.
type Share struct{ Kept, All int }

// Percent returns the kept share in percent.
func (s Share) Percent() float64 { return 100 * float64(s.Kept) / float64(max(1, s.All)) }

// Measure measures writers on all sessions that are long enough.
//
// Errors: that of a message that cannot be read, or of a compaction that failed.
func Measure(ctx context.Context, sessions []*replay.Session, writers []Writer, o Options) ([]Row, error) {
	rows := make([]Row, len(writers))
	for i := range writers {
		rows[i] = Row{Writer: writers[i].Name, Kept: map[string]Share{}}
	}
	runs := 0
	for _, s := range sessions {
		if s.Tokens() < int64(o.MinTokens) {
			continue
		}
		parts, err := divided(s)
		if err != nil {
			return nil, err
		}
		for seed := range o.Seeds {
			with, facts := plant(parts, rand.New(rand.NewPCG(uint64(seed+1), nameOf(s.Name))), o.HeldOut)
			runs++
			for i := range writers {
				l := life{session: s, steps: bodies(s, parts, with), facts: facts, maxTokens: o.MaxTokens}
				if err := rows[i].measure(ctx, &l, &writers[i]); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range rows {
		rows[i].Tokens /= max(1, runs)
		rows[i].Compactions /= max(1, runs)
	}
	return rows, nil
}

func (r *Row) count(kind string, kept bool) {
	for _, of := range []string{kind, ""} {
		share := r.Kept[of]
		if share.All++; kept {
			share.Kept++
		}
		r.Kept[of] = share
	}
}

// Table returns the head and the lines of a table of rows: shares in percent, of how many facts.
func Table(rows []Row) (head []string, lines [][]string) {
	head = append([]string{"writer", "all"}, Kinds()...)
	for i := range rows {
		line := []string{rows[i].Writer}
		for _, kind := range append([]string{""}, Kinds()...) {
			line = append(line, rows[i].Kept[kind].text())
		}
		lines = append(lines, append(line, strconv.Itoa(rows[i].Tokens), strconv.Itoa(rows[i].Compactions)))
	}
	return slices.Concat(head, []string{"tokens", "compactions"}), lines
}
