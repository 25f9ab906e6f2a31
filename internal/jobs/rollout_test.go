package jobs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// rolledOut are sessions that the default has compacted once, of which half have another version since.
type rolledOut struct {
	*world
	session.Rollout
	control, canary []session.Address
	before          map[string][][]byte // what each served when the rollout began
	since           [][]byte            // what was appended to the canary's then
}

// rollOut compacts sessions under the default, and then those of the rollout under its version, and of the others one
// under the default.
func (w *world) rollOut(sessions int) rolledOut {
	w.Helper()
	r := rolledOut{world: w, before: map[string][][]byte{}, since: turn(100, 600)}
	var all []session.Address
	for i := range sessions {
		all = append(all, w.session(fmt.Sprint("s", i)))
		w.fill(all[i])
	}
	w.settle()
	p := settled()
	p.Trigger, p.Target = 0.3, 0.1
	tried := session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document(), Patch: p.Document()}
	start := session.RolloutStart{PerMille: 500}
	start.Edit = func(_, _ json.RawMessage) (session.Policy, error) { return tried, nil }
	start.Rebase = start.Edit
	for _, at := range all {
		r.before[at.ID] = w.view(at)
	}
	r.start(all, start)
	w.fill(r.control[0])
	for _, at := range r.canary {
		w.append(at, r.since...)
	}
	w.settle()
	return r
}

// start begins rollouts until one has two sessions or more on either side: which sessions it tries is a hash of its id.
func (r *rolledOut) start(all []session.Address, start session.RolloutStart) {
	r.Helper()
	for range 100 {
		var err error
		if r.Rollout, _, err = r.store.StartRollout(r.Context(), r.tenant, start); err != nil {
			r.Fatal(err)
		}
		r.control, r.canary = nil, nil
		for _, at := range all {
			if found, err := r.store.Session(r.Context(), at); err != nil {
				r.Fatal(err)
			} else if found.Policy.Version.Tenant == r.Version {
				r.canary = append(r.canary, at)
			} else {
				r.control = append(r.control, at)
			}
		}
		if len(r.control) > 1 && len(r.canary) > 1 {
			return
		}
		if _, _, err = r.store.EndRolloutBack(r.Context(), r.tenant, r.ID, session.RolloutChange{}); err != nil {
			r.Fatal(err)
		}
	}
	r.Fatal("100 rollouts of half the sessions tried all of them or none")
}

// recall reads every stored result of a session back once.
func (w *world) recall(at session.Address) {
	w.Helper()
	var refs []string
	err := postgres.InTenant(w.Context(), w.store.Pool(), w.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(w.Context(), `
			SELECT array_agg(r.ref)
			  FROM results r
			  JOIN sessions s ON s.tenant_id = r.tenant_id AND s.key = r.session_key
			 WHERE s.id = $1`, at.ID).Scan(&refs)
	})
	var recalled []session.Recalled
	for _, ref := range refs {
		recalled = append(recalled, session.Recalled{Session: at.ID, Ref: ref, Via: session.ViaREST, Reads: 2, Last: time.Now()})
	}
	if err == nil {
		_, err = w.store.CountRecalls(w.Context(), w.tenant, recalled)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// recount counts what runs of sessions did since the rollout began from the lists of their runs, which know nothing of
// versions.
func (r *rolledOut) recount(version int, ats []session.Address) session.RolloutArm {
	r.Helper()
	arm := session.RolloutArm{Version: version, Trimmed: []session.RolloutStage{}}
	stages := map[string]session.RolloutStage{}
	for _, at := range ats {
		runs, err := r.store.Runs(r.Context(), at, session.Page{Limit: 100})
		if err != nil {
			r.Fatal(err)
		}
		compactions := arm.Compactions
		for _, run := range runs {
			if run.State != session.RunDone || run.FinishedAt.Before(r.StartedAt) {
				continue
			}
			arm.Compactions++
			arm.TokensBefore += *run.TokensBefore
			arm.TokensAfter += *run.TokensAfter
			arm.ReadBack.Parts += run.ReadBack.Parts
			arm.ReadBack.Reads += run.ReadBack.Reads
			arm.ReadBack.Tokens += run.ReadBack.Tokens
			addStages(r.T, stages, run.Stages)
		}
		if arm.Compactions > compactions {
			arm.Sessions++
		}
	}
	arm.TokensSaved = arm.TokensBefore - arm.TokensAfter
	for _, stage := range stages {
		arm.Trimmed = append(arm.Trimmed, stage)
	}
	slices.SortFunc(arm.Trimmed, func(a, b session.RolloutStage) int { return int(b.TokensSaved - a.TokensSaved) })
	arm.SetRates()
	return arm
}

func addStages(t *testing.T, sums map[string]session.RolloutStage, stages json.RawMessage) {
	t.Helper()
	var list []struct {
		Stage       string
		Actions     int64
		TokensSaved int64 `json:"tokens_saved"`
	}
	if err := json.Unmarshal(stages, &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Actions > 0 {
			sum := sums[s.Stage]
			sums[s.Stage] = session.RolloutStage{Stage: s.Stage, Actions: sum.Actions + s.Actions, TokensSaved: sum.TokensSaved + s.TokensSaved}
		}
	}
}

func TestAComparisonIsWhatTheRunsOfEachVersionDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{})
	r := w.rollOut(8)
	lent := w.recompact(session.Recompaction{Policy: json.RawMessage(lean), Filter: session.SessionFilter{Sessions: []string{r.control[len(r.control)-1].ID}}})
	w.until(lent, ended)
	for _, at := range slices.Concat(r.control, r.canary) {
		w.recall(at)
	}
	found, err := w.store.Rollout(t.Context(), w.tenant, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	control := r.control[:len(r.control)-1] // the last one ran under a policy that is nobody's
	want := session.RolloutComparison{Control: r.recount(r.BaseVersion, control), Canary: r.recount(r.Version, r.canary)}
	if diff := cmp.Diff(want, found.Comparison); diff != "" {
		t.Errorf("recounted (-) and told (+):\n%s", diff)
	}
	for name, arm := range map[string]session.RolloutArm{"control": found.Comparison.Control, "canary": found.Comparison.Canary} {
		if arm.Compactions == 0 || arm.TokensSaved <= 0 || arm.ReadBack.Reads == 0 || len(arm.Trimmed) == 0 {
			t.Errorf("%s: %+v shows nothing", name, arm)
		}
	}
	if _, err := w.store.Delete(t.Context(), r.canary[0], nil); err != nil {
		t.Fatal(err)
	}
	found, err = w.store.Rollout(t.Context(), w.tenant, r.ID)
	if err != nil || found.Comparison.Canary.Sessions != want.Canary.Sessions-1 {
		t.Errorf("after an erasure: %+v, %v", found.Comparison.Canary, err)
	}
	var rows string
	err = postgres.InTenant(t.Context(), w.store.Pool(), w.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT string_agg(to_jsonb(r)::text || (SELECT string_agg(to_jsonb(p)::text, ' ') FROM policies p), ' ') FROM policy_rollouts r`).Scan(&rows)
	})
	if err != nil || strings.Contains(rows, r.canary[0].ID+`"`) || strings.Contains(rows, `session_key`) {
		t.Errorf("the rollout names a session: %s, %v", rows, err)
	}
}

func TestARolloutThatGoesBackTakesBackWhatItsVersionDid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work(jobs.Config{})
	r := w.rollOut(6)
	served := map[string][][]byte{}
	for _, at := range r.control {
		served[at.ID] = w.view(at)
	}
	made, err := w.store.Rollout(t.Context(), w.tenant, r.ID)
	if err != nil || made.Comparison.Canary.Sessions != int64(len(r.canary)) {
		t.Fatalf("of %d sessions %+v were compacted under the version, %v", len(r.canary), made.Comparison.Canary, err)
	}
	back, _, err := w.store.EndRolloutBack(t.Context(), w.tenant, r.ID, session.RolloutChange{RollBack: true})
	if err != nil || back.Recompaction == nil {
		t.Fatalf("%+v, %v", back, err)
	}
	found := w.until(*back.Recompaction, in(session.RecompactionRolledBack))
	if found.RolledBack != int64(len(r.canary)) || found.Excepted != 0 {
		t.Errorf("of %d sessions: %+v, %+v", len(r.canary), found, w.outcomes(*back.Recompaction))
	}
	w.settle()
	for _, at := range r.canary {
		w.serves(at, slices.Concat(r.before[at.ID], r.since))
		if s, err := w.store.Session(t.Context(), at); err != nil || s.Policy.Version.Tenant != r.BaseVersion {
			t.Errorf("%s has version %d, %v", at.ID, s.Policy.Version.Tenant, err)
		}
	}
	for _, at := range r.control {
		w.serves(at, served[at.ID])
	}
}
