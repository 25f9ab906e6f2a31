package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// longTokens is how many tokens a recorded conversation must have to be one of the long ones.
const longTokens = 25_000

// BenchmarkEngine compares the engine alone, message bytes in to view bytes out, with json.Valid over the same bytes:
// the policy is the default, and the last message of each conversation crosses its trigger. The tokens were counted
// by the appends before, or are counted, too.
func BenchmarkEngine(b *testing.B) {
	for _, f := range session.Formats() {
		inputs, what := longSessions(b, f)
		name := fmt.Sprintf("%s/%s/", f, what)
		counting := func(in compact.Input) error { return errors.Join(countOnce(in), compactOnce(in)) }
		beside(b, name+"tokens counted before", func() work {
			return work{bytesOf(inputs...), inTurn(inputs, compactOnce), inTurn(inputs, validateOnce)}
		})
		beside(b, name+"counting included", func() work {
			return work{bytesOf(inputs...), inTurn(inputs, counting), inTurn(inputs, validateOnce)}
		})
	}
}

// wanted chooses benchmarks by their names in the table of make bench.
var wanted = flag.String("wanted", "", "measure only what this regular expression matches")

// isWanted reports whether a benchmark is to be measured.
func isWanted(benchmark string) bool {
	return regexp.MustCompile(*wanted).MatchString(tableName(benchmark))
}

// work is what is measured, over that many bytes, and its floor.
type work struct {
	size        int
	ours, floor func() error
}

// beside prepares a piece of work and runs it and its floor, if that is wanted.
func beside(b *testing.B, name string, prepare func() work) {
	b.Helper()
	if !isWanted(strings.TrimPrefix(b.Name(), "Benchmark") + "/" + name) {
		return
	}
	w := prepare()
	for _, side := range []struct {
		name string
		do   func() error
	}{{"ours", w.ours}, {"floor", w.floor}} {
		b.Run(name+"/"+side.name, func(b *testing.B) {
			b.SetBytes(int64(w.size))
			for b.Loop() {
				if err := side.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// dataDir returns the folder of recorded conversations.
func dataDir() string {
	return cmp.Or(os.Getenv("VARVE_DATA"), filepath.Join("..", "..", "shared", "data"))
}

// inTurn returns a function that does the same with one session after another.
func inTurn(inputs []compact.Input, do func(compact.Input) error) func() error {
	return func() error {
		for _, in := range inputs {
			if err := do(in); err != nil {
				return err
			}
		}
		return nil
	}
}

// longSessions returns the recorded conversations of a format that are long and that the engine can shorten, or a
// made-up one if there are none.
func longSessions(b *testing.B, f session.Format) (inputs []compact.Input, what string) {
	read, _, err := compacttest.Recorded(dataDir())
	if err != nil {
		b.Fatal(err)
	}
	for i := range read {
		c := &read[i]
		if c.Format != f || c.Total() < longTokens {
			continue
		}
		in := inputOf(c, ownWindow)
		err := compactOnce(in)
		if err == nil {
			inputs = append(inputs, in)
		} else if !errors.Is(err, errNothingToDo) {
			b.Fatalf("%s: %v", c.ID, err)
		}
	}
	if len(inputs) > 0 {
		return inputs, fmt.Sprintf("%d recorded sessions", len(inputs))
	}
	return []compact.Input{inputOf(generated(b, f, 1_000, 1), ownWindow)}, "a made-up session"
}

// inputOf returns a conversation as the worker hands it to the engine: in a window of that many tokens, or for
// ownWindow in one whose trigger its last message crosses.
func inputOf(c *compacttest.Conversation, window int) compact.Input {
	in := compact.Input{Format: c.Format, Policy: policy.Default()}
	in.WindowTokens = cmp.Or(window, int(float64(c.Total())/in.Policy.Trigger))
	in.Tail = entries(c)
	return in
}

func bytesOf(inputs ...compact.Input) (size int) {
	for _, in := range inputs {
		if in.Base != nil {
			size += len(in.Base.Body)
		}
		for i := range in.Tail {
			size += len(in.Tail[i].Body)
		}
	}
	return size
}

var errNothingToDo = errors.New("the engine changed nothing: this is not the work to measure")

func compactOnce(in compact.Input) error {
	plan, _, err := compact.Run(context.Background(), in, nil)
	if err == nil && !plan.Changed() {
		err = errNothingToDo
	}
	return err
}

// countOnce does what an append does to find the parts of its messages and to count their tokens.
func countOnce(in compact.Input) error {
	for i := range in.Tail {
		if _, err := wire.Inspect(in.Format, in.Tail[i].Body); err != nil {
			return err
		}
	}
	return nil
}

// validateOnce does the floor's work: json.Valid over the checkpoint and the messages.
func validateOnce(in compact.Input) error {
	if in.Base != nil && !json.Valid(joined([][]byte{[]byte("[0"), in.Base.Body, []byte("0]")})) {
		return errors.New("the checkpoint is not JSON")
	}
	for i := range in.Tail {
		if !json.Valid(in.Tail[i].Body) {
			return fmt.Errorf("message %d is not JSON", i)
		}
	}
	return nil
}
