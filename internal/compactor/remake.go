package compactor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// ErrNotRemade reports that a checkpoint could not be made again byte for byte: its base is gone, it is of another
// version of the engine, its session's window is another now, or a model wrote its summary.
var ErrNotRemade = errors.New("the checkpoint cannot be made again as it was")

// Remake makes a checkpoint again from what it was made of, without storing it, and proves that it is the one that is
// damaged: by its digests or, if it is from before there were digests, by all that is stored of it and whole. whole
// reports whether a field is: body, state, units, manifest.
//
// Errors: ErrNotFound, ErrNotRemade.
func Remake(ctx context.Context, store *postgres.Store, key session.Key, n int) (*postgres.Checkpoint, error) {
	source, err := store.ReadRemake(ctx, key, n)
	if errors.Is(err, session.ErrNotFound) {
		return nil, fmt.Errorf("%w: its base or its run is not kept", ErrNotRemade)
	}
	if err != nil {
		return nil, err
	}
	if source.Stored.EngineVersion != compact.EngineVersion {
		return nil, fmt.Errorf("%w: engine version %d made it", ErrNotRemade, source.Stored.EngineVersion)
	}
	own, err := policy.Parse(source.Policy.Document)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRemade, err)
	}
	answers, err := store.LiveSummaries(ctx, key)
	tail := source.Tail
	for last := source.LastSeqs[1]; last >= source.LastSeqs[0] && err == nil; last-- {
		for len(tail) > 0 && tail[len(tail)-1].Seq > last {
			tail = tail[:len(tail)-1]
		}
		source.Tail = tail
		for _, ended := range [][]session.Summary{answers, nil} {
			var made *postgres.Checkpoint
			if made, err = remake(ctx, &source, &own, ended); err == nil && isSame(made, &source.Stored) {
				return made, nil
			}
			if answers == nil {
				break
			}
		}
	}
	return nil, errors.Join(ErrNotRemade, err)
}

// remake runs the engine as the run did that made the checkpoint, if its windows were of the default size or its policy
// makes the same of windows of any size.
//
// With answers of models, they are taken in wherever they are wanted; without any, each is as if it were still due.
func remake(
	ctx context.Context, source *postgres.Remake, own *policy.Policy, answers []session.Summary,
) (made *postgres.Checkpoint, err error) {
	defer failOpen(&err)
	from := FromCheckpoint
	if source.Base == nil {
		from = FromLog
	}
	pl := planner{window: DefaultWindow, ended: answers}
	w := pl.writerOf(ctx, &source.Snapshot, own)
	w.recorded = true
	p, _, err := pl.chain(ctx, source.Snapshot, own, from, w)
	if err != nil {
		return nil, err
	}
	if p.rendition, err = view.NewRendition(ctx, p.Input.Format, p.Made.Body); err != nil {
		return nil, err
	}
	made, err = storedCheckpoint(p)
	if err == nil && !wire.IsAssessed(source.Stored.ValidatorState) {
		made.ValidatorState = source.Stored.ValidatorState // of an earlier version: the digest is of that one
	}
	return made, err
}

// isSame reports whether a checkpoint that was made again is the stored one. Of what is stored, one thing may be
// damaged; all others must be the same.
func isSame(made *postgres.Checkpoint, stored *postgres.AuditedCheckpoint) bool {
	same := 0
	for _, equal := range []bool{
		bytes.Equal(made.Body, stored.Body),
		bytes.Equal(made.State, stored.State),
		sameJSON(made.Units, stored.Units),
		sameJSON(made.Manifest, stored.Manifest),
		bytes.Equal(made.ValidatorState, stored.ValidatorState) && len(made.OpenCalls) == len(stored.OpenCalls),
	} {
		if equal {
			same++
		}
	}
	return same >= 4 && made.Tokens == stored.Tokens && made.Through == stored.Through && made.Size == stored.Size
}

// sameJSON reports whether two documents have the same value: jsonb keeps neither spaces nor the order of members.
func sameJSON(a, b json.RawMessage) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
