// Package verify proves that everything is still there: it recomputes what can be computed of what is stored (digests,
// the order of seqs, columns, counters, checkpoints, refs, views) and reports what differs, where it is, what that
// means for readers, and what to do. It only reads; Repair (repair.go) rebuilds derived data, and never the log.
//
// Start at Verifier.Run, then Verifier.Session (session.go), which looks at one session as it was at one moment, so
// that appends and compactions go on meanwhile. finding.go lists what can be found. store.go has the SQL of the tables
// verifications and findings.
package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
)

// Verifier checks sessions of a store.
type Verifier struct{ Store *postgres.Store }

// Report is what was looked at, and what was found.
type Report struct {
	Sessions    int64     `json:"sessions"`
	Messages    int64     `json:"messages"`
	Checkpoints int64     `json:"checkpoints"`
	Results     int64     `json:"results"`
	Bytes       int64     `json:"bytes"`       // that were read
	Unexplained int64     `json:"unexplained"` // of these, those of what is damaged, or of no use
	Undigested  int64     `json:"undigested"`  // messages and checkpoints from before there were digests
	Actions     int64     `json:"actions"`     // rows of audit trails
	Findings    []Finding `json:"findings"`
}

// Add adds another report.
func (r *Report) Add(o *Report) {
	r.Sessions += o.Sessions
	r.Messages += o.Messages
	r.Checkpoints += o.Checkpoints
	r.Results += o.Results
	r.Bytes += o.Bytes
	r.Unexplained += o.Unexplained
	r.Undigested += o.Undigested
	r.Actions += o.Actions
	r.Findings = append(r.Findings, o.Findings...)
}

// Session looks at one session. It looks again before it reports anything: what is not found a second time was work
// under way. A session that is gone has nothing to report.
func (v *Verifier) Session(ctx context.Context, key session.Key) (Report, error) {
	first, err := v.look(ctx, key)
	if errors.Is(err, session.ErrNotFound) {
		return v.archive(ctx, key)
	}
	if err != nil || len(first.Findings) == 0 {
		return first, err
	}
	again, err := v.look(ctx, key)
	if errors.Is(err, session.ErrNotFound) {
		return Report{}, nil
	}
	seen := map[place]bool{}
	for i := range first.Findings {
		seen[first.Findings[i].place()] = true
	}
	confirmed := again.Findings[:0]
	for _, f := range again.Findings {
		if seen[f.place()] {
			confirmed = append(confirmed, f)
		}
	}
	again.Findings = confirmed
	return again, err
}

// archive looks at the archive of a session that is archived. One that is gone has nothing to report.
func (v *Verifier) archive(ctx context.Context, key session.Key) (Report, error) {
	id, stored, err := tier.Verify(ctx, v.Store, key)
	report := Report{Sessions: 1, Bytes: stored}
	switch {
	case errors.Is(err, session.ErrNotFound):
		return Report{}, nil
	case errors.Is(err, session.ErrDamaged):
		report.Unexplained = stored
		report.Findings = []Finding{{
			Kind: Archive, Tenant: key.Tenant, Session: id, Key: key.Key, What: err.Error(),
			Means: advices[Archive].means, Do: advices[Archive].do,
		}}
	case err != nil:
		return Report{}, fmt.Errorf("session %s: %w", key.Key, err)
	}
	return report, nil
}

// Scope is what to look at. The zero Scope is everything.
type Scope struct {
	Tenants  []session.Tenant // nil for all
	Session  string           // the id of one session of the only tenant; "" for all
	Share    float64          // of the sessions, drawn at random; 0 for all of them
	Operator bool             // look at the operators' audit trail, too
}

// Progress is told after each session how many of how many there are, and what was found in it.
type Progress func(done, total int64, of *Report) error

// Run looks at all sessions of a scope, one after another, and repairs what it finds if it is to. ErrNotFound if there
// is no such session.
func (v *Verifier) Run(ctx context.Context, scope Scope, repair bool, told Progress) error {
	look := v.Session
	if repair {
		look = v.Repair
	}
	if scope.Session != "" {
		return v.one(ctx, session.Address{Tenant: scope.Tenants[0].ID, ID: scope.Session}, look, told)
	}
	total := int64(0)
	for _, t := range scope.Tenants {
		n, err := v.Store.CountSessions(ctx, t.ID)
		if err != nil {
			return err
		}
		total += n
	}
	done := int64(0)
	for _, t := range scope.Tenants {
		err := v.tenant(ctx, t.ID, func(key session.Key) (err error) {
			done++
			var report Report
			if scope.Share == 0 || rand.Float64() < scope.Share {
				if report, err = look(ctx, key); err != nil {
					return err
				}
			}
			return told(done, max(total, done), &report)
		})
		if err != nil {
			return err
		}
		if scope.Share > 0 {
			continue
		}
		for _, whole := range []tenantLooker{v.strays, v.trail} {
			if err := whole.tell(ctx, t.ID, done, max(total, done), told); err != nil {
				return err
			}
		}
	}
	if scope.Operator {
		return tenantLooker(v.trail).tell(ctx, audit.Operator, done, max(total, done), told)
	}
	return nil
}

// A tenantLooker looks at what a tenant has beside its sessions.
type tenantLooker func(context.Context, uuid.UUID) (Report, error)

func (look tenantLooker) tell(ctx context.Context, tenant uuid.UUID, done, total int64, told Progress) error {
	report, err := look(ctx, tenant)
	if err != nil {
		return err
	}
	return told(done, total, &report)
}

type looker func(context.Context, session.Key) (Report, error)

func (v *Verifier) one(ctx context.Context, at session.Address, look looker, told Progress) error {
	key, err := v.Store.KeyOf(ctx, at)
	if err != nil {
		return fmt.Errorf("session %s: %w", at.ID, err)
	}
	report, err := look(ctx, session.Key{Tenant: at.Tenant, Key: key})
	if err != nil {
		return err
	}
	return told(1, 1, &report)
}

// straysShown is how many sessions that do not exist are named for each table.
const straysShown = 100

// strays reports the rows of a tenant whose session does not exist. It looks twice, as Session does: a session may be
// made or erased meanwhile.
func (v *Verifier) strays(ctx context.Context, tenant uuid.UUID) (report Report, err error) {
	first, err := v.straysOf(ctx, tenant, straysShown)
	if err != nil || len(first) == 0 {
		return report, err
	}
	again, err := v.straysOf(ctx, tenant, straysShown)
	for _, s := range again {
		if slices.Contains(first, s) {
			report.Findings = append(report.Findings, Finding{
				Kind: Orphan, Tenant: tenant, Key: s.session, Name: s.table,
				What: fmt.Sprintf("rows of %s name the session with the key %s, which does not exist",
					s.table, s.session),
				Means: advices[Orphan].means, Do: advices[Orphan].do,
			})
		}
	}
	return report, err
}

// keyPage is how many keys of sessions are read at once.
const keyPage = 1000

// tenant calls do with every session of a tenant.
func (v *Verifier) tenant(ctx context.Context, tenant uuid.UUID, do func(session.Key) error) error {
	for after := uuid.Nil; ; {
		keys, err := v.Store.AuditKeys(ctx, tenant, after, keyPage)
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if err := do(session.Key{Tenant: tenant, Key: key}); err != nil {
				return err
			}
		}
		after = keys[len(keys)-1]
	}
}
