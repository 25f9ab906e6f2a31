package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

var decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))

// checkpoints checks every checkpoint of the session, one at a time.
func (i *inspection) checkpoints(ctx context.Context) (err error) {
	numbers, err := i.audit.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for n := 1; n <= i.audit.Checkpoint; n++ {
		if !slices.Contains(numbers, n) {
			i.add(Finding{Kind: Lost, Checkpoint: n}, "the session has no such checkpoint, and its newest is %d",
				i.audit.Checkpoint)
		}
	}
	for _, n := range numbers {
		c, err := i.audit.ReadCheckpoint(ctx, n)
		if err != nil {
			return err
		}
		if i.checkpoint(ctx, &c); ctx.Err() != nil {
			return ctx.Err() // what was read of it is not damaged
		}
	}
	return nil
}

func (i *inspection) checkpoint(ctx context.Context, c *postgres.AuditedCheckpoint) {
	i.report.Checkpoints++
	i.report.Bytes += int64(len(c.Body) + len(c.State) + len(c.Units) + len(c.Manifest))
	switch {
	case c.N > i.audit.Checkpoint:
		i.add(Finding{Kind: Counter, Checkpoint: c.N, Name: "checkpoint_n"},
			"the session's newest checkpoint is %d by its row", i.audit.Checkpoint)
	case c.N == i.audit.Checkpoint:
		i.newest = c
		if !c.Kept {
			i.add(Finding{Kind: Checkpoint, Checkpoint: c.N}, "it is the newest, and has no body")
		}
	}
	if c.Base >= c.N || c.RestoredFrom >= c.N || c.Through > i.audit.LastSeq {
		i.add(Finding{Kind: Coverage, Checkpoint: c.N},
			"it builds on checkpoint %d and covers messages 1 to %d of %d", c.Base, c.Through, i.audit.LastSeq)
	}
	i.manifest(c)
	if c.Kept {
		found := len(i.report.Findings) + len(i.uncovered)
		i.rendition(ctx, c)
		i.digests(c, len(i.report.Findings)+len(i.uncovered) > found)
	}
}

// digests compares a checkpoint with its digests, unless it is known already that something is wrong with it.
func (i *inspection) digests(c *postgres.AuditedCheckpoint, found bool) {
	switch {
	case !c.Sealed:
		i.report.Undigested++
	case found:
	case !c.Whole:
		i.add(Finding{Kind: Checkpoint, Checkpoint: c.N}, "it has another digest than when it was written")
	case !c.StateWhole:
		i.add(Finding{Kind: State, Checkpoint: c.N}, "its state has another digest than when it was written")
	}
}

// manifest checks that every ref of what left the view at a checkpoint brings something back.
func (i *inspection) manifest(c *postgres.AuditedCheckpoint) {
	var actions []compact.Action
	if err := json.Unmarshal(c.Manifest, &actions); err != nil {
		i.add(Finding{Kind: Manifest, Checkpoint: c.N}, "its manifest does not read: %v", err)
		return
	}
	for a := range actions {
		ref := actions[a].Ref
		switch {
		case ref == "":
		case ref[0] == 'm':
			if m, ok := session.ParseMessagesRef(ref); !ok || m.Last > i.audit.LastSeq {
				i.add(Finding{Kind: Ref, Ref: ref, Checkpoint: c.N}, "its manifest names messages that are not there")
			}
		default:
			i.persisted(c.N, ref)
		}
	}
}

// persisted checks that a result which is not whole in the view is persisted.
func (i *inspection) persisted(n int, ref string) {
	if i.named[ref] {
		return
	}
	i.named[ref] = true
	_, err := session.ParseResultRef(ref)
	switch {
	case err != nil:
		i.add(Finding{Kind: State, Checkpoint: n}, "it names %q, which is no ref", ref)
	case !i.results[ref]:
		i.add(Finding{Kind: Ref, Ref: ref, Checkpoint: n}, "the checkpoint names the result, which is not persisted")
	}
}

// rendition checks the body of a checkpoint and all that was computed from it.
func (i *inspection) rendition(ctx context.Context, c *postgres.AuditedCheckpoint) {
	body, err := zframe.Decompress(nil, c.Body, c.Size)
	if err != nil {
		i.report.Unexplained += int64(len(c.Body))
		i.add(Finding{Kind: Checkpoint, Checkpoint: c.N}, "its body does not decompress: %v", err)
		return
	}
	i.report.Bytes += int64(len(body))
	made, err := view.NewRendition(ctx, i.audit.Format, body)
	if err != nil {
		i.report.Unexplained += int64(len(c.Body) + len(body))
		i.add(Finding{Kind: Checkpoint, Checkpoint: c.N}, "its body is damaged: %v", err)
		return
	}
	i.units(c, body)
	i.walked(c, made)
	i.state(c, body)
}

// walked compares what a reader relies on with what the body says.
func (i *inspection) walked(c *postgres.AuditedCheckpoint, made *view.Rendition) {
	if wire.IsAssessed(c.ValidatorState) && !bytes.Equal(c.ValidatorState, made.ValidatorState()) {
		i.add(Finding{Kind: Validator, Checkpoint: c.N, Name: "validator_state"},
			"the state of the validator is not that of the body")
	}
	open := made.OpenCalls()
	for n := range open {
		open[n] = postgres.Text(open[n])
	}
	slices.Sort(open)
	stored := slices.Sorted(slices.Values(c.OpenCalls))
	if !slices.Equal(open, stored) {
		i.add(Finding{Kind: Validator, Checkpoint: c.N, Name: "open_calls"}, "it has the open calls %v, its body %v",
			stored, open)
	}
}

// units checks that the units divide the body, and stand for the messages that the checkpoint covers, each once.
func (i *inspection) units(c *postgres.AuditedCheckpoint, body []byte) {
	var stored []compact.Unit
	err := json.Unmarshal(c.Units, &stored)
	if err != nil {
		i.add(Finding{Kind: Units, Checkpoint: c.N}, "its units do not read: %v", err)
		return
	}
	list, err := view.Units(body, stored)
	if err != nil {
		i.add(Finding{Kind: Units, Checkpoint: c.N}, "%v", err)
		return
	}
	for n := range list {
		if _, err := view.Split(list[n].Joined); err != nil {
			i.add(Finding{Kind: Units, Checkpoint: c.N}, "its unit %d does not begin where a message does: %v", n, err)
			return
		}
	}
	if len(stored) > 0 {
		i.covered(c, stored)
	}
}

func (i *inspection) covered(c *postgres.AuditedCheckpoint, stored []compact.Unit) {
	var tokens, messages int64
	for n := range stored {
		tokens += stored[n].Tokens
		messages += int64(stored[n].Messages)
		if seq := stored[n].FirstSeq; seq < 1 || seq > c.Through {
			i.add(Finding{Kind: Coverage, Checkpoint: c.N}, "its unit %d begins with message %d of 1 to %d", n, seq,
				c.Through)
			return
		}
	}
	if tokens != c.Tokens {
		i.add(Finding{Kind: Counter, Checkpoint: c.N, Name: "tokens"}, "it has %d tokens, its units %d", c.Tokens,
			tokens)
	}
	if messages != c.Messages && !c.Translated {
		i.uncovered = append(i.uncovered, uncovered{c.N, messages, c.Messages, c.Through})
	}
}

// uncovered is a checkpoint whose units stand for another number of messages than the log has there.
type uncovered struct {
	n               int
	claimed, logged int64
	through         int64
}

// coverage reports the checkpoints that do not cover the log. If the log itself misses messages, they are not to blame.
func (i *inspection) coverage() {
	if !i.isWhole(Missing, Extra) || i.isFound("pinned") {
		return
	}
	for _, u := range i.uncovered {
		i.add(Finding{Kind: Coverage, Checkpoint: u.n}, "its units stand for %d messages, the log has %d through %d",
			u.claimed, u.logged, u.through)
	}
}

// state checks that the next compaction can start from the checkpoint, and that what it names is there.
func (i *inspection) state(c *postgres.AuditedCheckpoint, body []byte) {
	state, err := decoder.DecodeAll(c.State, nil)
	if err != nil {
		i.add(Finding{Kind: State, Checkpoint: c.N}, "its state does not decompress: %v", err)
		return
	}
	if c.EngineVersion != compact.EngineVersion {
		return // another version of the engine starts from the log
	}
	facts, err := compact.ReadState(i.audit.Format, &compact.Checkpoint{Through: c.Through, Body: body, State: state})
	if err != nil {
		i.add(Finding{Kind: State, Checkpoint: c.N}, "its state does not read: %v", err)
		return
	}
	for _, ref := range facts.Replaced {
		i.persisted(c.N, ref)
	}
	for _, ref := range facts.Named {
		i.want(c.N, ref)
	}
}

// want looks for a result that a summary names, in the log unless it is persisted.
func (i *inspection) want(n int, ref string) {
	if i.named[ref] || i.results[ref] {
		return
	}
	i.named[ref] = true
	ref, _, _ = strings.Cut(ref, " lines ")
	at, err := session.ParseResultRef(ref)
	if err != nil || at.IsUpload() {
		return // a copy names what its tool said that it is
	}
	i.wanted[at.Seq] = append(i.wanted[at.Seq], wantedRef{ref: ref, checkpoint: n})
}
