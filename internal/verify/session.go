package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// inspection is one look at a session.
type inspection struct {
	audit     *postgres.Audit
	report    Report
	log       logWalk
	newest    *postgres.AuditedCheckpoint // its statistics; nil if there is none
	results   map[string]bool             // refs of the results that are persisted
	named     map[string]bool             // refs that were looked at
	wanted    map[int64][]wantedRef       // refs that only the log can have, by seq
	uncovered []uncovered
	rows      map[string]persist.Result // of the results with bodies of their own, by ref
	bodies    []persist.AuditedBody
	packs     []session.MessagesRef
	skipped   []session.MessagesRef // packs that were replaced meanwhile
	damaged   map[uuid.UUID]int     // bodies, and which finding says so
	held      map[uuid.UUID]bool    // bodies that messages in packs need
}

func newInspection(a *postgres.Audit) inspection {
	return inspection{
		audit: a, results: map[string]bool{}, named: map[string]bool{}, wanted: map[int64][]wantedRef{},
		rows: map[string]persist.Result{}, held: map[uuid.UUID]bool{},
		damaged: map[uuid.UUID]int{},
	}
}

// wantedRef is a ref that a checkpoint names without a persisted result.
type wantedRef struct {
	ref        string
	checkpoint int
	sum        *[32]byte // nil for a result without a row
}

// look reads all of a session at one moment, and then its view.
func (v *Verifier) look(ctx context.Context, key session.Key) (Report, error) {
	var i inspection
	err := v.Store.Audit(ctx, key, func(a *postgres.Audit) error {
		i = newInspection(a)
		return i.inspect(ctx)
	})
	if err != nil {
		return i.report, fmt.Errorf("session %s: %w", key.Key, err)
	}
	i.report.Sessions = 1
	if err := v.lookAtPacks(ctx, &i); err != nil {
		return i.report, err
	}
	i.namedResults()
	i.pinned()
	i.coverage()
	i.counters()
	if len(i.report.Findings) == 0 && i.audit.LastSeq > 0 {
		err = v.lookAtView(ctx, &i)
	}
	return i.report, err
}

// add adds a finding of the session.
func (i *inspection) add(f Finding, what string, args ...any) {
	f.Tenant, f.Session = i.audit.Tenant, i.audit.ID
	f.Key = i.audit.Key.Key
	f.What = fmt.Sprintf(what, args...)
	f.Means, f.Do = advices[f.Kind].means, advices[f.Kind].do
	i.report.Findings = append(i.report.Findings, f)
}

// inspect checks checkpoints before messages, because they name the results that the log must have.
func (i *inspection) inspect(ctx context.Context) (err error) {
	if err := i.readResults(ctx); err != nil {
		return err
	}
	if err := i.checkpoints(ctx); err != nil {
		return err
	}
	if i.packs, err = i.audit.Packs(ctx); err != nil {
		return err
	}
	if err := i.messages(ctx); err != nil {
		return err
	}
	return i.readBodies(ctx)
}

// isWhole reports whether nothing of these kinds was found.
func (i *inspection) isWhole(kinds ...Kind) bool {
	return !slices.ContainsFunc(i.report.Findings, func(f Finding) bool { return slices.Contains(kinds, f.Kind) })
}

// isFound reports whether a counter was found to be wrong.
func (i *inspection) isFound(counter string) bool {
	return slices.ContainsFunc(i.report.Findings, func(f Finding) bool {
		return f.Kind == Counter && f.Name == counter
	})
}

// lookAtView makes the session's view as a reader gets it. It reads what is stored now; a later message or checkpoint
// is as good.
func (v *Verifier) lookAtView(ctx context.Context, i *inspection) error {
	at := session.Address{Tenant: i.audit.Tenant, ID: i.audit.ID}
	stored, err := v.Store.View(ctx, at, postgres.Version{})
	if errors.Is(err, session.ErrNotFound) {
		return nil // deleted meanwhile
	}
	if errors.Is(err, session.ErrDamaged) {
		i.add(Finding{Kind: View, Checkpoint: i.audit.Checkpoint}, "it cannot be read: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	request := view.Request{}
	if _, _, err = request.Make(ctx, &stored); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		i.add(Finding{Kind: View, Checkpoint: stored.Checkpoint}, "no valid view can be made: %v", err)
		return nil
	}
	if !request.AsStored(&stored) {
		return nil
	}
	bodies, err := view.Bodies(&stored)
	if err != nil {
		return err
	}
	violations, err := wire.Validate(ctx, stored.Format, bodies, wire.Options{Model: stored.Model})
	for _, broken := range violations {
		i.add(Finding{Kind: View, Checkpoint: stored.Checkpoint},
			"it is sent as it is stored, and breaks %s at its message %d: %s",
			broken.Rule, broken.Message, broken.Detail)
		return nil
	}
	return err
}
