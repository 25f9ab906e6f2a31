package compactor

import (
	"context"
	"errors"
	"fmt"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// DefaultWindow is how many bytes of the log a compaction takes in at a time.
const DefaultWindow = 32 << 20

// planner plans compactions as chains: the rendition of each window is the base of the next, as if the session had
// ended there, and the last one is what is committed. A window's newest messages are protected as the session's are;
// if they are not among those, the next window no longer protects them. What a chain makes is what one compaction of
// all messages makes, as far as package compact says so of compactions step by step.
type planner struct {
	store   *postgres.Store // nil: the snapshot has all messages
	caller  *modelcall.Caller
	writer  llm.Writer
	ask     bool              // a model, and wait for its answer
	known   []session.Summary // that models are asked for, have answered or failed to
	ended   []session.Summary // those that are not asked for any more
	only    bool              // take these in, and nothing else
	persist Persist
	cpu     admit.Processors
	window  int64 // bytes
	room    int64 // bytes of a window and of the rendition before it; 0 is without a bound
}

// storeError is an error of the store, or of what lies behind it: no stage is at fault, and none is done without.
type storeError struct{ error }

// Unwrap returns the error.
func (e storeError) Unwrap() error { return e.error }

// plan plans, renders and checks. It returns a panic of the engine as an error, so that the caller can continue without
// the stage that failed.
func (pl *planner) plan(
	ctx context.Context, snap postgres.Snapshot, policy *policy.Policy, from From,
) (*Proposal, error) {
	w := pl.writerOf(ctx, &snap, policy)
	w.only = pl.only && from == FromCheckpoint
	p, read, err := pl.chain(ctx, snap, policy, from, w)
	if err == nil && w.lost != nil {
		err = storeError{w.lost}
	}
	if err != nil {
		return nil, err
	}
	p.window, p.Wanted = read.held, w.wanted
	return p, p.finish(ctx, read)
}

func (pl *planner) writerOf(ctx context.Context, snap *postgres.Snapshot, policy *policy.Policy) *writer {
	return &writer{
		ctx: ctx, key: snap.Key, policy: policy, store: pl.store, caller: pl.caller, own: pl.writer, ask: pl.ask,
		known: pl.known, ended: pl.ended,
	}
}

// chain plans one window after the other. read returns the last one.
func (pl *planner) chain(
	ctx context.Context, snap postgres.Snapshot, policy *policy.Policy, from From, w *writer,
) (p *Proposal, read *windows, err error) {
	if !policy.Enabled {
		policy = policy.Off()
	}
	p = &Proposal{Snapshot: snap, From: from, cpu: pl.cpu}
	base, err := baseOf(&snap, from)
	if err != nil {
		return nil, nil, err
	}
	if base != nil {
		p.taken.base = len(base.Body)
	}
	read = &windows{store: pl.store, snap: &p.Snapshot, size: pl.window}
	if err := read.open(ctx, read.after(base)); err != nil {
		return nil, nil, err
	}
	for {
		var messages []postgres.LogMessage
		if err = pl.fits(read, base); err == nil {
			messages, err = read.next(ctx, read.after(base))
		}
		if err == nil {
			err = p.take(ctx, base, messages, policy, w)
		}
		if err != nil || len(read.ends) == 0 {
			return p, read, err
		}
		if base, err = pl.handOn(ctx, p, base, messages); err != nil {
			return nil, nil, err
		}
	}
}

// fits returns ErrTooHeavy unless the process has the bytes for the next window. If no unit ended in the last window,
// the next one contains its messages again.
func (pl *planner) fits(read *windows, base *compact.Checkpoint) error {
	again := read.bytesAfter(read.after(base))
	before := int64(0)
	if base != nil {
		before = int64(len(base.Body))
	}
	if pl.room == 0 || before+again+pl.window <= pl.room {
		return nil
	}
	return fmt.Errorf("through message %d the view has %d bytes, and %d more are in a turn that does not end: there "+
		"is room for %d: %w", read.after(base), before, again, pl.room, session.ErrTooHeavy)
}

// baseOf returns what a compaction starts from; nil for the log.
func baseOf(snap *postgres.Snapshot, from From) (*compact.Checkpoint, error) {
	if from == FromLog {
		return nil, nil
	}
	return loaded(snap.Base)
}

// handOn persists what left the view with a window, and returns the base of the next one. A window in which no unit
// ends has changed nothing: the next one takes its messages in again.
func (pl *planner) handOn(
	ctx context.Context, p *Proposal, base *compact.Checkpoint, window []postgres.LogMessage,
) (*compact.Checkpoint, error) {
	if base != nil && p.Made.Through <= base.Through || len(p.Made.Body) == 0 {
		return base, nil
	}
	if _, err := check(ctx, &p.Input, p.evicts, p.Made); err != nil {
		return nil, err
	}
	p.Input.Base, p.Input.Tail = nil, nil
	results := p.Plan.Results[p.persisted:]
	if pl.persist != nil {
		if err := pl.persist(ctx, window, results); err != nil {
			return nil, storeError{err}
		}
	}
	for i := range results {
		results[i].Stored = nil
	}
	p.persisted = len(p.Plan.Results)
	p.Plan.Forget()
	p.taken.plan = p.Plan
	return p.Made, nil
}

// taken is what a chain of windows has taken in.
type taken struct {
	plan     *compact.Plan // of the windows before the present one
	base     int           // bytes of the rendition that it began with
	through  int64         // the last seq
	messages int
	tokens   int64
	bytes    int64 // with commas
}

// add counts messages that were not counted yet.
func (t *taken) add(in *compact.Input, messages []postgres.LogMessage) {
	for i := range messages {
		if m := &messages[i]; m.Seq > t.through {
			t.messages++
			t.tokens += m.Tokens
		}
	}
	for i := range in.Tail {
		if e := &in.Tail[i]; e.Seq > t.through {
			t.bytes += int64(len(e.Body)) + 1
		}
	}
	if n := len(messages); n > 0 {
		t.through = max(t.through, messages[n-1].Seq)
	}
}

// take compacts a window of messages on top of a base.
func (p *Proposal) take(
	ctx context.Context, base *compact.Checkpoint, messages []postgres.LogMessage, policy *policy.Policy, w *writer,
) (err error) {
	if p.Input, err = inputOf(ctx, &p.Snapshot, policy, base, messages); err != nil {
		return err
	}
	p.taken.add(&p.Input, messages)
	w.offer(&p.Input)
	p.Input.Older = w.older(&p.Snapshot)
	if err := p.run(ctx, w.hook()); err != nil {
		return err
	}
	if len(p.Made.Body) > session.MaxTailBytes {
		return fmt.Errorf("a rendition of %d bytes through message %d: %w",
			len(p.Made.Body), p.Made.Through, session.ErrLogTooLarge)
	}
	return nil
}

// run plans and renders the input. It returns a panic as an error.
func (p *Proposal) run(ctx context.Context, write compact.Write) (err error) {
	defer failOpen(&err)
	err = p.cpu.Step(ctx, p.inputBytes(), func(cpu *admit.Step) (err error) {
		p.Plan, p.Made, err = compact.Run(ctx, p.Input, resting(cpu, write))
		return err
	})
	if err != nil {
		return err
	}
	p.evicts = evicts(p.Plan)
	if p.taken.plan != nil {
		err = p.Plan.Continue(p.taken.plan)
	}
	return err
}

func (p *Proposal) inputBytes() (bytes int64) {
	if p.Input.Base != nil {
		bytes = int64(len(p.Input.Base.Body))
	}
	for i := range p.Input.Tail {
		bytes += int64(len(p.Input.Tail[i].Body))
	}
	return bytes
}

// resting returns a writer of summaries that holds no processor while it waits for a model.
func resting(cpu *admit.Step, write compact.Write) compact.Write {
	if write == nil {
		return nil
	}
	return func(r summary.Request) (a summary.Answer, err error) {
		waited := cpu.Rest(func() { a, err = write(r) })
		return a, errors.Join(err, waited)
	}
}

// windows reads the messages that a compaction takes in.
type windows struct {
	store *postgres.Store // nil: the snapshot has all messages
	snap  *postgres.Snapshot
	size  int64   // bytes
	ends  []int64 // the last seqs of the windows that are still to be read

	held      []postgres.LogMessage // the window that was read last
	heldAfter int64                 // it has all messages after this seq, up to its last one
}

// after returns the last seq before the messages that follow a base.
func (w *windows) after(base *compact.Checkpoint) int64 {
	if base == nil {
		return w.snap.SeparateSeq
	}
	return max(w.snap.SeparateSeq, base.Through)
}

// bytesAfter returns the bytes of the messages after seq after of the window that was read last.
func (w *windows) bytesAfter(after int64) (bytes int64) {
	for i := range w.held {
		if w.held[i].Seq > after {
			bytes += int64(len(w.held[i].Body))
		}
	}
	return bytes
}

// open cuts the messages after seq after into windows: at least one, which may be empty.
func (w *windows) open(ctx context.Context, after int64) (err error) {
	if w.store == nil {
		w.ends = windowEnds(w.snap.Tail, after, w.size)
	} else if w.ends, err = w.store.Windows(ctx, w.snap, after, w.size); err != nil {
		return storeError{err}
	}
	if len(w.ends) == 0 {
		w.ends = append(w.ends, w.snap.LastSeq)
	}
	return nil
}

// windowEnds does for messages in memory what postgres.Store.Windows does.
func windowEnds(messages []postgres.LogMessage, after, size int64) (ends []int64) {
	before, window := int64(0), int64(-1)
	for i := range messages {
		m := &messages[i]
		if m.Seq <= after {
			continue
		}
		if k := before / size; k != window {
			window = k
			ends = append(ends, 0)
		}
		ends[len(ends)-1] = m.Seq
		before += int64(len(m.Body))
	}
	return ends
}

// next reads the next window, and before it the messages after seq after that an earlier one had.
func (w *windows) next(ctx context.Context, after int64) (messages []postgres.LogMessage, err error) {
	through := w.ends[0]
	w.ends = w.ends[1:]
	w.held, w.heldAfter = nil, after // so that two are not in memory at once
	if w.store == nil {
		for i := range w.snap.Tail {
			if m := &w.snap.Tail[i]; after < m.Seq && m.Seq <= through {
				messages = append(messages, *m)
			}
		}
	} else if messages, err = w.store.Window(ctx, w.snap.Key, after, through); err != nil {
		return nil, storeError{err}
	}
	w.held = messages
	return messages, nil
}

// each calls do with the messages after seq after, in order, until it returns false. What is no longer in memory is
// read again.
func (w *windows) each(ctx context.Context, after int64, do func(*postgres.LogMessage) bool) error {
	if after >= w.heldAfter {
		eachOf(w.held, after, do)
		return nil
	}
	if err := w.open(ctx, after); err != nil {
		return err
	}
	for len(w.ends) > 0 {
		end := w.ends[0]
		messages, err := w.next(ctx, after)
		if err != nil {
			return err
		}
		if !eachOf(messages, after, do) {
			return nil
		}
		after = end
	}
	return nil
}

func eachOf(messages []postgres.LogMessage, after int64, do func(*postgres.LogMessage) bool) bool {
	for i := range messages {
		if messages[i].Seq > after && !do(&messages[i]) {
			return false
		}
	}
	return true
}
