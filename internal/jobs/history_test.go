package jobs_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

var histories = flag.Int("histories", 1, "how many random histories are tested; make soak has 50")

// TestNoSessionStaysAboveItsTrigger does at random what makes sessions due and not due, while jobs are lost. Once
// everything was looked after, no session is above its trigger, unless its floor says so under its present policy.
func TestNoSessionStaysAboveItsTrigger(t *testing.T) {
	t.Parallel()
	for seed := range *histories {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := &history{world: newWorld(t), Rand: rand.New(rand.NewPCG(13, uint64(seed)))}
			_, stop := h.work(jobs.Config{})
			for n := range 3 {
				h.sessions = append(h.sessions, h.session(fmt.Sprint("s", n)))
				h.append(h.sessions[n], []byte(`{"role":"user","content":"read all files"}`))
			}
			for range 50 {
				h.step()
			}
			h.settle()
			stop()
			for range 10 { // what nobody works at
				h.step()
			}
			h.loseJobs()
			h.work(jobs.Config{})
			h.lookAfter()
			for _, at := range h.sessions {
				h.holdToTrigger(at)
			}
			t.Logf("%d steps that failed as they may, %d floors, steps %v", h.refused, h.floors, h.steps)
		})
	}
}

// history is a world in which things happen at random.
type history struct {
	*world
	*rand.Rand
	sessions []session.Address
	turns    int
	refused  int // steps
	floors   int // that kept a session above its trigger
	steps    [8]int
}

func (h *history) step() {
	at := h.sessions[h.IntN(len(h.sessions))]
	what := h.IntN(len(h.steps) + 9)
	if what >= len(h.steps) {
		what = 0 // most steps are appends
	}
	h.steps[what]++
	switch what {
	case 0:
		h.turns++
		h.append(at, turn(h.turns, 200+h.IntN(1200))...)
	case 1:
		h.pop(at)
	case 2: // the last one never has a policy of its own, so that all changes of the default are for it
		if at == h.sessions[len(h.sessions)-1] {
			break
		}
		p := h.policy()
		own := session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()}
		h.may(h.update(at, session.Change{Policy: &own}))
	case 3:
		window := []int{5000, 10_000, 20_000}[h.IntN(3)]
		h.may(h.update(at, session.Change{WindowTokens: &window}))
	case 4:
		edit := func(_, _ json.RawMessage) (session.Policy, error) {
			p := h.policy()
			return session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document(), Patch: p.Document()}, nil
		}
		rebase := func(_, own json.RawMessage) (session.Policy, error) {
			return session.Policy{Document: own, Patch: own}, nil
		}
		_, _, err := h.store.ChangeTenantPolicy(h.Context(), h.tenant, session.TenantPolicy{Edit: edit, Rebase: rebase})
		h.may(err)
	case 5:
		h.restore(at)
	case 6:
		h.loseJobs()
	case 7:
		h.rewrite(at)
	}
}

// loseJobs does what no process should.
func (h *history) loseJobs() {
	h.Helper()
	_, err := h.store.Pool().Exec(h.Context(), `DELETE FROM river_job WHERE kind = 'compact' AND finalized_at IS NULL`)
	h.may(err)
}

// policy returns one of several policies, of which some can remove much and some nothing.
func (h *history) policy() policy.Policy {
	p := jobstest.Settled()
	p.Trigger = []float64{0.3, 0.5, 0.8}[h.IntN(3)]
	p.Target = p.Trigger / 2
	if h.IntN(2) == 0 {
		p.Trim.Enabled, p.Arguments.Enabled, p.Summarise.Enabled = false, false, false
		p.Cap.Enabled, p.Truncate.Enabled = false, false
	}
	p.Protect.LastMessages = []int{0, 4, 12}[h.IntN(3)]
	return p
}

func (h *history) update(at session.Address, change session.Change) error {
	_, _, err := h.store.Update(h.Context(), at, change, nil)
	return err
}

// may fails the test, unless an error says that a step is not possible now.
func (h *history) may(err error) {
	h.Helper()
	var invalid *session.InvalidError
	var stale *session.StaleError
	switch {
	case err == nil:
	case errors.As(err, &invalid), errors.As(err, &stale), errors.Is(err, session.ErrPruned),
		errors.Is(err, session.ErrNotFound), errors.Is(err, postgres.ErrMoved):
		h.refused++
	default:
		h.Fatal(err)
	}
}

// pop removes the newest message.
func (h *history) pop(at session.Address) {
	_, found, err := h.store.Messages(h.Context(), at, postgres.Range{Descending: true, Limit: 1})
	if err != nil || len(found) == 0 || found[0].Seq == 1 {
		h.may(err)
		return
	}
	_, _, err = h.store.Remove(h.Context(), at, found[0].Seq, nil)
	h.may(err)
}

// rewrite supersedes some of the newest messages, and appends another turn.
func (h *history) rewrite(at session.Address) {
	found, newest, err := h.store.Messages(h.Context(), at, postgres.Range{Descending: true, Limit: 30})
	if err != nil || len(newest) == 0 {
		h.may(err)
		return
	}
	h.turns++
	r := session.Replacement{Session: at, Seen: found.LastSeq, From: newest[h.IntN(len(newest))].Seq}
	r.Appends = []session.Append{jobstest.Batch(h, at, turn(h.turns, 200+h.IntN(1200))...)}
	_, _, err = h.store.Replace(h.Context(), r)
	h.may(err)
}

func (h *history) restore(at session.Address) {
	found, err := h.store.Session(h.Context(), at)
	if err != nil || found.Checkpoint == 0 {
		h.may(err)
		return
	}
	_, _, err = h.store.Restore(h.Context(), at, 1+h.IntN(found.Checkpoint), nil)
	h.may(err)
}

// lookAfter sweeps until there is nothing left to do.
func (h *history) lookAfter() {
	h.Helper()
	for range 20 {
		h.settle()
		if err := jobs.Sweep(h.Context(), h.store); err != nil {
			h.Fatal(err)
		}
		inserted, err := h.sweep()
		if err != nil {
			h.Fatal(err)
		}
		tasks, err := h.store.Tasks(h.Context(), postgres.TaskPolicy, 10)
		if err != nil {
			h.Fatal(err)
		}
		var live int
		err = h.store.Pool().QueryRow(h.Context(), `
			SELECT count(*) FROM river_job WHERE kind = 'compact' AND finalized_at IS NULL`).Scan(&live)
		if err != nil {
			h.Fatal(err)
		}
		if inserted+len(tasks)+live == 0 {
			return
		}
	}
	h.Fatal("after 20 sweeps there is still something to do")
}

// holdToTrigger fails the test if a session is above its trigger without a floor that says why: one that was found under
// its present policy, from which it has not grown by much.
func (h *history) holdToTrigger(at session.Address) {
	h.Helper()
	found, err := h.store.Session(h.Context(), at)
	if err != nil {
		h.Fatal(err)
	}
	tokens, trigger := found.ContextTokens, found.Policy.Trigger*float64(found.WindowTokens)
	if float64(tokens) < trigger {
		return
	}
	var floor int64
	err = postgres.InTenant(h.Context(), h.store.Pool(), h.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		return tx.QueryRow(h.Context(), `
			SELECT coalesce(max(s.floor_tokens), 0)
			  FROM sessions s
			  JOIN policies p ON p.tenant_id = s.tenant_id AND p.id = s.policy_id
			 WHERE s.tenant_id = $1 AND s.key = $2 AND s.floor_version = p.tenant_version`, h.tenant, found.Key).Scan(&floor)
	})
	if err != nil {
		h.Fatal(err)
	}
	if float64(tokens) >= float64(floor)+due.Regrowth*float64(found.WindowTokens) {
		h.Errorf("%s has %d tokens, its trigger is %.0f and its floor %d", at.ID, tokens, trigger, floor)
		return
	}
	h.floors++
}
