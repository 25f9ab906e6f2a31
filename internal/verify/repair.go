package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// repairing is the repair of one session. It rebuilds what is derived, in the order in which one thing is derived from
// the other: columns from messages, results and checkpoints from the log, counters from all of these.
type repairing struct {
	*Verifier
	key    session.Key
	report *Report
}

// Repair looks at a session like Session, rebuilds what it can, and looks again. Findings that are gone say what was
// done; the others say why not.
func (v *Verifier) Repair(ctx context.Context, key session.Key) (Report, error) {
	report, err := v.Session(ctx, key)
	if err != nil || len(report.Findings) == 0 && report.Undigested == 0 {
		return report, err
	}
	r := repairing{v, key, &report}
	if err := r.all(ctx); err != nil {
		return report, fmt.Errorf("repair of session %s: %w", key.Key, err)
	}
	again, err := v.Session(ctx, key)
	if err != nil {
		return report, err
	}
	r.compare(&again)
	return report, nil
}

// compare takes back what was said of findings that are still there, and adds those that are new.
func (r *repairing) compare(again *Report) {
	r.report.Undigested = again.Undigested
	known := map[place]*Finding{}
	for i := range r.report.Findings {
		known[r.report.Findings[i].place()] = &r.report.Findings[i]
	}
	for i := range again.Findings {
		now := &again.Findings[i]
		was := known[now.place()]
		switch {
		case was == nil:
			r.report.Findings = append(r.report.Findings, *now)
		case was.Repaired != "":
			was.Unrepaired = fmt.Sprintf("it is still wrong after this: %s", was.Repaired)
			was.Repaired = ""
		}
		delete(known, now.place())
	}
	for _, gone := range known {
		if gone.Repaired == "" && gone.Unrepaired == "" {
			gone.Repaired = "it is gone with what was repaired"
		}
	}
}

func (r *repairing) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.columns, r.results, r.checkpoints, r.counters, r.digests,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each calls do with the findings of kinds, and records what it says that it did or why it could not.
func (r *repairing) each(do func(f *Finding) (string, error), kinds ...Kind) error {
	for i := range r.report.Findings {
		f := &r.report.Findings[i]
		if !slices.Contains(kinds, f.Kind) {
			continue
		}
		done, err := do(f)
		switch {
		case err == nil:
			f.Repaired = done
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return err
		default:
			f.Unrepaired = err.Error()
		}
	}
	return nil
}

// columns extracts again what a message's columns have.
func (r *repairing) columns(ctx context.Context) error {
	return r.each(func(f *Finding) (string, error) {
		m, err := r.message(ctx, f.Seq)
		if err != nil {
			return "", err
		}
		found, err := wire.Inspect(m.Format, m.Body)
		if err != nil {
			return "", err
		}
		return "the columns were extracted again",
			r.Store.RepairColumns(ctx, r.key, f.Seq, m.Format, extracted(&found))
	}, Columns)
}

// message reads one message, whose body must be whole.
func (r *repairing) message(ctx context.Context, seq int64) (m postgres.AuditedMessage, err error) {
	err = r.Store.Audit(ctx, r.key, func(a *postgres.Audit) error {
		m, err = messageOf(ctx, a, seq)
		return err
	})
	return m, err
}

func messageOf(ctx context.Context, a *postgres.Audit, seq int64) (m postgres.AuditedMessage, err error) {
	page, err := a.WholeMessages(ctx, seq-1)
	if err != nil || len(page) == 0 || page[0].Seq != seq {
		return m, errors.Join(err, fmt.Errorf("message %d: %w", seq, session.ErrNotFound))
	}
	if page[0].Damage != nil {
		return m, page[0].Damage
	}
	return page[0], session.CheckMessage(seq, page[0].Body, page[0].Digest)
}

// checkpoints makes damaged checkpoints again, oldest first, because the newer ones are made of them.
func (r *repairing) checkpoints(ctx context.Context) error {
	done := map[int]string{}
	failed := map[int]error{}
	kinds := []Kind{Checkpoint, State, Units, Validator, Coverage, Manifest, View, ViewBody, Lost}
	numbers := map[int]bool{}
	for i := range r.report.Findings {
		if f := &r.report.Findings[i]; slices.Contains(kinds, f.Kind) {
			numbers[f.Checkpoint] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		done[n], failed[n] = r.checkpoint(ctx, n)
	}
	return r.each(func(f *Finding) (string, error) { return done[f.Checkpoint], failed[f.Checkpoint] }, kinds...)
}

// checkpoint makes checkpoint n again as it was, or else does without it: an old one loses its body, the newest is
// followed by one that is made from the log.
func (r *repairing) checkpoint(ctx context.Context, n int) (string, error) {
	made, err := compactor.Remake(ctx, r.Store, r.key, n)
	if err == nil {
		if err = r.Store.ReplaceRendition(ctx, r.key, n, made); err == nil {
			return "it was made again, byte for byte", nil
		}
	}
	if ctx.Err() != nil {
		return "", err
	}
	if r.hasFound(Message, Missing, Extra) {
		return "", fmt.Errorf("%w, and the log is damaged: another one would miss what this one may still have", err)
	}
	if r.lost(n) {
		if err := r.Store.FillCheckpoint(ctx, r.key, n, int32(wire.FlagPinned)); err != nil {
			return "", err
		}
	}
	newest, recompactErr := r.recompact(ctx, n)
	if recompactErr != nil {
		return "", errors.Join(err, recompactErr)
	}
	if err := r.Store.DropRendition(ctx, r.key, n); err != nil {
		return "", err
	}
	if newest == n {
		return "", err
	}
	if r.lost(n) {
		return fmt.Sprintf("an empty row took its place; checkpoint %d serves", newest), nil
	}
	return fmt.Sprintf("checkpoint %d serves in its place; its body was deleted as that of an old one", newest), nil
}

// recompact makes a new checkpoint from the log if n is the newest, and returns the number of the newest.
func (r *repairing) recompact(ctx context.Context, n int) (newest int, err error) {
	snap, err := r.Store.Snapshot(ctx, r.key)
	if err != nil || snap.Base == nil || snap.Base.N != n {
		return newestOf(snap), err
	}
	run, job, err := r.Store.AskForRepair(ctx, r.key)
	if err != nil {
		return n, err
	}
	c := compactor.Compactor{Store: r.Store, Log: slog.New(slog.DiscardHandler), Trace: func(string) {}}
	if _, err := c.Compact(ctx, r.key, run, job); err != nil && !errors.Is(err, session.ErrEnded) {
		return n, err
	}
	snap, err = r.Store.Snapshot(ctx, r.key)
	return newestOf(snap), err
}

// hasFound reports whether something of these kinds was found.
func (r *repairing) hasFound(kinds ...Kind) bool {
	return slices.ContainsFunc(r.report.Findings, func(f Finding) bool { return slices.Contains(kinds, f.Kind) })
}

func (r *repairing) lost(n int) bool {
	return slices.ContainsFunc(r.report.Findings, func(f Finding) bool { return f.Kind == Lost && f.Checkpoint == n })
}

func newestOf(snap postgres.Snapshot) int {
	if snap.Base == nil {
		return 0
	}
	return snap.Base.N
}

// counters counts the session's numbers again. Of a log that is not whole they are left as they are: they tell what is
// missing.
func (r *repairing) counters(ctx context.Context) error {
	var done error
	counted := false
	return r.each(func(f *Finding) (string, error) {
		if !counted {
			done = r.Store.RepairCounters(ctx, r.key, int32(wire.FlagPinned))
			counted = true
		}
		return "it was counted again", done
	}, Counter)
}

// digests writes the digests that old messages lack.
func (r *repairing) digests(ctx context.Context) error {
	if r.report.Undigested == 0 || r.hasFound(Message) {
		return nil
	}
	if !r.hasFound(Checkpoint, State, Units, Validator, Coverage) {
		if err := r.Store.FillProofs(ctx, r.key); err != nil {
			return err
		}
	}
	_, err := r.Store.FillDigests(ctx, r.key)
	if errors.Is(err, postgres.ErrNotOwner) {
		return nil // they stay unknown, as the report says
	}
	return err
}
