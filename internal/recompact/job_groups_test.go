package recompact_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

var (
	groupSessions = flag.Int("group-sessions", 24, "how many sessions TestAGroupIsRolledBack has")
	groupTenants  = flag.Int("group-tenants", 4, "of how many tenants these are")
)

// group is a recompaction of many tenants under test.
type group struct {
	*world
	id      uuid.UUID
	tenants []*world
	before  map[session.Address][][]byte // what each session served before
	later   map[session.Address][][]byte // what was appended since
	mu      sync.Mutex                   // for later
}

// newGroup makes sessions of several tenants: some never compacted, some compacted once, some restored.
func newGroup(w *world) *group {
	w.Helper()
	c := &group{world: w, before: map[session.Address][][]byte{}, later: map[session.Address][][]byte{}}
	p := jobstest.Settled()
	_, stop := w.work(jobs.Config{Compactions: 8})
	for n := range *groupTenants {
		of := *w
		made, err := w.store.CreateTenant(w.Context(), fmt.Sprint("tenant ", n), session.Policy{Trigger: p.Trigger, Hard: p.Hard, Document: p.Document()})
		if err != nil {
			w.Fatal(err)
		}
		of.tenant = made.ID
		c.tenants = append(c.tenants, &of)
		of.many(*groupSessions / *groupTenants, 12)
	}
	for n, of := range c.tenants {
		for i := range *groupSessions / *groupTenants {
			if (n+i)%3 > 0 {
				of.fill(of.at(fmt.Sprintf("s%04d", i)))
			}
		}
	}
	w.settle()
	for n, of := range c.tenants {
		for i := range *groupSessions / *groupTenants {
			at := of.at(fmt.Sprintf("s%04d", i))
			if (n+i)%3 > 1 {
				if _, _, err := w.store.Restore(w.Context(), at, 1, nil); err != nil {
					w.Fatal(err)
				}
			}
		}
	}
	w.settle()
	stop()
	for _, of := range c.tenants {
		for i := range *groupSessions / *groupTenants {
			at := of.at(fmt.Sprintf("s%04d", i))
			c.before[at] = w.view(at)
		}
	}
	return c
}

// used returns the sessions of a tenant to which messages are appended: of those that were never compacted.
func (c *group) used(n int) (list []session.Address) {
	for i := (3 - n%3) % 3; i < *groupSessions / *groupTenants && len(list) < 2; i += 3 {
		list = append(list, c.tenants[n].at(fmt.Sprintf("s%04d", i)))
	}
	return list
}

// load appends to some sessions of each tenant, and reads the views of all, until busy is over.
func (c *group) load(busy context.Context) *sync.WaitGroup {
	load := &sync.WaitGroup{}
	for n := range c.tenants {
		load.Go(func() {
			for _, at := range c.used(n) {
				c.add(at, 2)
			}
			for i := 0; busy.Err() == nil; i++ {
				at := c.tenants[n].at(fmt.Sprintf("s%04d", i%(*groupSessions / *groupTenants)))
				if violations := wiretest.Validate(session.OpenAIChat, c.view(at), wire.Options{}); len(violations) > 0 {
					c.Errorf("the view of %s breaks its provider's rules: %v", at.ID, violations)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	return load
}

// add appends turns to a session.
func (c *group) add(at session.Address, turns int) {
	for n := range turns {
		bodies := turn(1000+n, 300)
		c.append(at, bodies...)
		c.mu.Lock()
		c.later[at] = append(c.later[at], bodies...)
		c.mu.Unlock()
	}
}

// is waits until the recompactions of the group are as they are asked to be.
func (c *group) is(so func(recompact.Stored) bool) []recompact.Part {
	c.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, parts, err := c.store.Group(c.Context(), c.id)
		if err != nil {
			c.Fatal(err)
		}
		if !slices.ContainsFunc(parts, func(p recompact.Part) bool { return !so(p.Stored) }) {
			return parts
		}
		if time.Now().After(end) {
			c.Fatalf("it does not come to that: %+v", parts)
		}
	}
}

func (c *group) do(what recompact.Control) {
	c.Helper()
	if err := c.store.ControlGroup(c.Context(), c.id, what); err != nil {
		c.Fatal(err)
	}
}

// TestAGroupIsRolledBack recompacts the sessions of many tenants while messages are appended and views read; workers
// are killed in it, it is paused and resumed, and rolled back, and a worker is killed in that, too. With
// -args -group-sessions=1000 -group-tenants=20 it has a thousand sessions.
func TestAGroupIsRolledBack(t *testing.T) {
	t.Parallel()
	c := newGroup(newWorld(t))
	tenants := []uuid.UUID{}
	for _, of := range c.tenants {
		tenants = append(tenants, of.tenant)
	}
	made, _, err := c.store.CreateGroup(t.Context(), recompact.Group{
		ID: uuid.Must(uuid.NewV7()), Tenants: tenants, Policy: json.RawMessage(lean), Pace: recompact.Pace{MaxRunning: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.id = made.ID
	busy, stopLoad := context.WithCancel(t.Context())
	defer stopLoad()
	load := c.load(busy)
	for _, step := range []string{"planned", "persisted", "committed"} {
		c.kill(step)
		c.rescueRecompaction()
	}
	c.do(recompact.Pause)
	_, stop := c.work(jobs.Config{Compactions: 8})
	idle := func(r recompact.Stored) bool { return r.State == recompact.Paused && r.Running == 0 }
	paused := c.is(func(r recompact.Stored) bool { return ended(r) || idle(r) })
	c.do(recompact.Resume)
	done := c.is(ended)
	stopLoad()
	load.Wait()
	for n := range c.tenants {
		c.add(c.used(n)[1], 60) // which has it compacted
	}
	c.settle()
	stop()
	went := map[session.Address][][]byte{}
	for at := range c.before {
		went[at] = c.view(at)
	}
	c.do(recompact.RollBack)
	c.kill("rolled back")
	c.rescueRecompaction()
	c.work(jobs.Config{Compactions: 8})
	rolledBack := c.is(in(recompact.RolledBack))
	c.settle()
	t.Logf("when it was paused: %s", progress(paused))
	t.Logf("at its end: %s", progress(done))
	t.Logf("rolled back: %s", progress(rolledBack))
	c.hold(rolledBack, went)
}

// hold requires that every session serves what it served before with what was appended since, or is excepted because it
// went on, and then serves what it did before the rollback.
func (c *group) hold(parts []recompact.Part, went map[session.Address][][]byte) {
	c.Helper()
	seen := 0
	for i, of := range c.tenants {
		for id, o := range of.outcomes(parts[i].ID) {
			at := of.at(id)
			seen++
			switch o.State {
			case "rolled_back", "unchanged":
				c.serves(at, append(slices.Clone(c.before[at]), c.later[at]...))
			case "excepted":
				if c.later[at] == nil {
					c.Errorf("nothing was appended to %s, which is excepted: %s", id, *o.Reason)
				}
				c.serves(at, went[at])
			default:
				c.Errorf("session %s is %s, %v", id, o.State, o.Error)
			}
		}
	}
	var sum recompact.Stored
	for _, p := range parts {
		sum.Changed += p.Changed
		sum.RolledBack += p.RolledBack
		sum.Excepted += p.Excepted
	}
	if seen != len(c.before) || sum.RolledBack+sum.Excepted != sum.Changed || sum.Excepted == 0 || sum.Excepted > int64(2*len(c.tenants)) {
		c.Errorf("%d of %d sessions: %+v", seen, len(c.before), sum)
	}
}

func progress(parts []recompact.Part) string {
	var total, changed, unchanged, failed, rolledBack, excepted int64
	for _, p := range parts {
		total, changed, unchanged = total+p.Total, changed+p.Changed, unchanged+p.Unchanged
		failed, rolledBack, excepted = failed+p.Failed, rolledBack+p.RolledBack, excepted+p.Excepted
	}
	return fmt.Sprintf("%d sessions, %d changed, %d unchanged, %d failed, %d rolled back, %d excepted", total, changed, unchanged, failed, rolledBack, excepted)
}

// rescueRecompaction does at once what River does when twice the job's timeout is over.
func (w *world) rescueRecompaction() {
	w.Helper()
	_, err := w.store.Pool().Exec(w.Context(), `
		UPDATE river_job
		   SET state = 'available', scheduled_at = now()
		 WHERE state IN ('running', 'retryable') AND queue = 'recompaction'`)
	if err != nil {
		w.Fatal(err)
	}
}
