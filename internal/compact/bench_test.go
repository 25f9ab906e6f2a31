package compact

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// BenchmarkMake measures message bytes in to view bytes out, beside json.Valid over the same bytes.
func BenchmarkMake(b *testing.B) {
	for _, f := range session.Formats() {
		for _, size := range []struct {
			name             string
			messages, tokens int
		}{
			{"200k-tokens", 1_000, 200_000}, {"1000-messages", 1_000, math.MaxInt}, {"10000-messages", 10_000, math.MaxInt},
		} {
			in := benchInput(b, f, size.messages, size.tokens)
			b.Run(fmt.Sprintf("%s/%s", f, size.name), func(b *testing.B) { benchCompaction(b, in) })
			b.Run(fmt.Sprintf("%s/%s/json.Valid", f, size.name), func(b *testing.B) { benchValid(b, in) })
		}
	}
}

// longTokens is what a recorded conversation has at least that is compacted here.
const longTokens = 25_000

// BenchmarkRecorded compacts the long conversations that agents really had, where they are at hand, one after another.
func BenchmarkRecorded(b *testing.B) {
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	read, _, err := compacttest.Recorded(dir)
	if err != nil {
		b.Fatal(err)
	}
	inputs := map[session.Format][]Input{}
	for i := range read {
		if c := &read[i]; c.Total() > longTokens {
			inputs[c.Format] = append(inputs[c.Format], recordedInput(c))
		}
	}
	for _, f := range session.Formats() {
		if len(inputs[f]) == 0 {
			b.Logf("no long conversation of the format %s in %s", f, dir)
			continue
		}
		b.Run(string(f)+"/compaction", func(b *testing.B) { benchCompaction(b, inputs[f]...) })
		b.Run(string(f)+"/inspect", func(b *testing.B) { benchInspect(b, inputs[f]...) })
		b.Run(string(f)+"/json.Valid", func(b *testing.B) { benchValid(b, inputs[f]...) })
	}
}

// recordedInput returns a conversation whose last message crosses the trigger.
func recordedInput(c *compacttest.Conversation) Input {
	in := Input{Format: c.Format, Policy: policy.Default()}
	in.WindowTokens = int(float64(c.Total()) / in.Policy.Trigger)
	for i, body := range c.Messages {
		in.Tail = append(in.Tail, Entry{Seq: int64(i + 1), Tokens: c.Tokens[i], Body: body})
	}
	return in
}

// BenchmarkIncremental compacts a session that has a checkpoint and 20 messages after it.
func BenchmarkIncremental(b *testing.B) {
	in := benchInput(b, session.OpenAIChat, 10_000, math.MaxInt)
	full := in.Tail
	in.Tail = full[:len(full)-20]
	plan, err := newPlan(context.Background(), in, nil)
	if err != nil {
		b.Fatal(err)
	}
	in.Base, in.Tail = render(plan), full[len(full)-20:]
	b.Run("view", func(b *testing.B) { benchCompaction(b, in) })
}

// benchInput returns a session with a number of messages, or its beginning with a number of tokens if that is shorter.
func benchInput(b *testing.B, f session.Format, messages, tokens int) Input {
	rng := rand.New(rand.NewPCG(1, uint64(messages)))
	in := Input{Format: f, Policy: policy.Default(), WindowTokens: 128_000}
	for i, body := range compacttest.Session(rng, f, compacttest.Options{Messages: messages}) {
		found, err := wire.Inspect(f, body)
		if err != nil {
			b.Fatal(err)
		}
		if tokens -= found.Tokens; tokens < 0 {
			break
		}
		in.Tail = append(in.Tail, Entry{Seq: int64(i + 1), Tokens: found.Tokens, Body: body})
	}
	return in
}

func bytesOf(inputs []Input) (n int64) {
	for _, in := range inputs {
		if in.Base != nil {
			n += int64(len(in.Base.Body))
		}
		for _, e := range in.Tail {
			n += int64(len(e.Body))
		}
	}
	return n
}

func benchCompaction(b *testing.B, inputs ...Input) {
	b.SetBytes(bytesOf(inputs))
	b.ReportAllocs()
	for b.Loop() {
		for _, in := range inputs {
			if _, _, err := Run(context.Background(), in, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// benchInspect does what an append does: it finds and estimates the parts of messages.
func benchInspect(b *testing.B, inputs ...Input) {
	b.SetBytes(bytesOf(inputs))
	b.ReportAllocs()
	for b.Loop() {
		for _, in := range inputs {
			for _, e := range in.Tail {
				if _, err := wire.Inspect(in.Format, e.Body); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

func benchValid(b *testing.B, inputs ...Input) {
	b.SetBytes(bytesOf(inputs))
	for b.Loop() {
		for _, in := range inputs {
			for _, e := range in.Tail {
				if !json.Valid(e.Body) {
					b.Fatal("no JSON")
				}
			}
		}
	}
}

// BenchmarkPins compacts sessions whose results are all pinned: the time for each must not grow with their number.
func BenchmarkPins(b *testing.B) {
	for _, results := range []int{500, 2_000, 8_000} {
		moves := []move{asks("Read all.")}
		for i := range results {
			moves = append(moves, gives("Read", fmt.Sprint(i), 300))
		}
		in := input(b, session.OpenAIChat, policy.Default(), 25*results, moves...)
		for i := range results {
			pin := Pin{Ref: fmt.Sprintf("m%d.0", 3+2*i), Seq: int64(3 + 2*i), Text: filler(300)}
			in.Pins = append(in.Pins, pin)
		}
		b.Run(fmt.Sprint(results), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := Run(context.Background(), in, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*results), "µs/result")
		})
	}
}
