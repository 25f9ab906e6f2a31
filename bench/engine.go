package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// longTokens is how many tokens a recorded conversation must have to be one of the long ones.
const longTokens = 25_000

// measureEngine compares the engine alone, message bytes in to view bytes out, with json.Valid over the same bytes: the
// policy is the default, and the last message of each conversation crosses its trigger.
func measureEngine(ctx context.Context, b *bench) error {
	defer oneCore()()
	for _, f := range session.Formats() {
		inputs, what, err := b.longSessions(f)
		if err != nil {
			return err
		}
		if err := b.measureFormat(ctx, fmt.Sprintf("engine, %s, %s", f, what), inputs); err != nil {
			return err
		}
	}
	return nil
}

// measureFormat measures sessions of one format, one after another: with the tokens that appends have counted, and
// together with counting them.
func (b *bench) measureFormat(ctx context.Context, name string, inputs []compact.Input) error {
	for _, side := range []struct {
		what string
		do   func(compact.Input) error
	}{
		{", tokens counted before", compactOnce},
		{", counting included", func(in compact.Input) error { return errors.Join(countOnce(in), compactOnce(in)) }},
	} {
		name := name + side.what
		if !b.wants(name) {
			continue
		}
		b.progress("%s", name)
		ours, floor, err := b.alternateHere(ctx, inTurn(inputs, side.do), inTurn(inputs, validateOnce))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		size := bytesOf(inputs...)
		measured := row{Name: name, Value: perSecond(size, ours), Unit: "MB/s", Goal: atLeast(0.8)}
		b.add(measured.beside(perSecond(size, floor)))
	}
	if !b.wants(name + ", allocations") {
		return nil
	}
	return b.measureAllocations(name, inputs)
}

func (b *bench) measureAllocations(name string, inputs []compact.Input) error {
	used, err := memoryOf(inTurn(inputs, compactOnce))
	if err != nil {
		return err
	}
	messages := 0
	for _, in := range inputs {
		messages += len(in.Tail)
	}
	objects, bytes := float64(used.objects), float64(used.bytes)
	b.add(row{Name: name + ", allocations a compaction", Value: objects / float64(len(inputs)), Unit: "objects"})
	b.add(row{Name: name + ", allocations a message", Value: objects / float64(messages), Unit: "objects"})
	size := float64(bytesOf(inputs...))
	b.add(row{Name: name + ", allocated for a byte of messages", Value: bytes / size, Unit: "bytes"})
	return nil
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

// longSessions returns the recorded conversations of a format that are long and that the engine can shorten, or a made-up
// one if there are none.
func (b *bench) longSessions(f session.Format) (inputs []compact.Input, what string, err error) {
	read, _, err := compacttest.Recorded(b.data)
	if err != nil {
		return nil, "", err
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
			return nil, "", fmt.Errorf("%s: %w", c.ID, err)
		}
	}
	if len(inputs) > 0 {
		return inputs, fmt.Sprintf("%d recorded sessions", len(inputs)), nil
	}
	made, err := generated(f, 1_000, 1)
	if err != nil {
		return nil, "", err
	}
	return []compact.Input{inputOf(made, ownWindow)}, "a made-up session", nil
}

// inputOf returns a conversation as the worker hands it to the engine: in a window of that many tokens, or for ownWindow
// in one whose trigger its last message crosses.
func inputOf(c *compacttest.Conversation, window int) compact.Input {
	in := compact.Input{Format: c.Format, Policy: policy.Default()}
	in.WindowTokens = cmp.Or(window, int(float64(c.Total())/in.Policy.Trigger))
	in.Tail = entries(c)
	return in
}

func entries(c *compacttest.Conversation) []compact.Entry {
	list := make([]compact.Entry, len(c.Messages))
	for i, body := range c.Messages {
		list[i] = compact.Entry{Seq: int64(i + 1), Tokens: c.Tokens[i], Body: body}
	}
	return list
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
	plan, _, err := compact.Run(in, nil)
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

// validateOnce is the floor: json.Valid over the checkpoint and the messages.
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
