package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// engineCase is a session that the engine compacts, its results of so many bytes on the average.
type engineCase struct {
	name             string
	messages, result int
}

var (
	engineSmall = engineCase{"engine, 1,000 messages", 1000, 1000}
	engineLarge = engineCase{"engine, 10,000 messages", 10_000, 1000}
	engineWide  = engineCase{"engine, 200k tokens in 300 messages", 300, 5300}
)

const linearRow = "engine, time of 10,000 messages beside 1,000"

// measureEngine compares the engine alone, message bytes in to view bytes out, with json.Valid over the same bytes.
func measureEngine(ctx context.Context, b *bench) error {
	for _, e := range []engineCase{engineSmall, engineWide, engineLarge} {
		if !b.wants(e.name) {
			continue
		}
		in, size, err := e.input()
		if err != nil {
			return err
		}
		err = b.compare(ctx, comparison{
			name: e.name, unit: "MB/s", goal: atLeast(0.3),
			ours:  throughput(size, func() error { return compactOnce(in) }),
			floor: throughput(size, func() error { return validateOnce(in) }),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if b.wants(linearRow) {
		return b.measureLinearity(ctx)
	}
	return nil
}

// measureLinearity sets one compaction of the large session beside ten of the small one, over and over: the shorter the
// turns, the less does it matter what else the machine does.
func (b *bench) measureLinearity(ctx context.Context) error {
	b.progress(linearRow)
	small, _, err := engineSmall.input()
	if err != nil {
		return err
	}
	large, _, err := engineLarge.input()
	if err != nil {
		return err
	}
	var ratios []float64
	for end := time.Now().Add(time.Duration(b.rounds) * b.round); ctx.Err() == nil && (len(ratios) < 3 || time.Now().Before(end)); {
		ten, err := timeOf(10, small)
		if err != nil {
			return err
		}
		one, err := timeOf(1, large)
		if err != nil {
			return err
		}
		ratios = append(ratios, 10*one.Seconds()/ten.Seconds())
	}
	b.add(row{Name: linearRow, Value: median(ratios), Unit: "times", Goal: atMost(12)})
	return ctx.Err()
}

func timeOf(n int, in compact.Input) (time.Duration, error) {
	start := time.Now()
	for range n {
		if err := compactOnce(in); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// input is the session as the worker hands it to the engine, its trigger just crossed.
func (e engineCase) input() (in compact.Input, size int, err error) {
	in = compact.Input{Format: session.OpenAIChat, Policy: compact.DefaultPolicy()}
	tokens := 0
	for i, body := range newCorpus(7).conversation(e.messages, e.result) {
		m, err := wire.Inspect(in.Format, body)
		if err != nil {
			return in, 0, err
		}
		in.Tail = append(in.Tail, compact.Entry{Seq: int64(i + 1), Tokens: m.Tokens, Body: body})
		tokens += m.Tokens
		size += len(body)
	}
	in.WindowTokens = int(float64(tokens) / in.Policy.Trigger)
	return in, size, nil
}

// throughput is how many megabytes a second one caller does.
func throughput(size int, do func() error) sample {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		rate, err := load(ctx, d, 1, func(int) func() error { return do })
		return rate * float64(size) / 1e6, err
	}
}

var errNothingToDo = errors.New("the engine changed nothing: this is not the work to measure")

func compactOnce(in compact.Input) error {
	plan, err := compact.Make(in)
	if err != nil {
		return err
	}
	if !plan.Changed() {
		return errNothingToDo
	}
	_, err = compact.Render(in, plan)
	return err
}

func validateOnce(in compact.Input) error {
	for i := range in.Tail {
		if !json.Valid(in.Tail[i].Body) {
			return fmt.Errorf("message %d is not JSON", i)
		}
	}
	return nil
}
