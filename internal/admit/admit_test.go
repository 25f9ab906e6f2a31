package admit_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

var alice, bob = uuid.MustParse("00000000-0000-0000-0000-00000000000a"), uuid.MustParse("00000000-0000-0000-0000-00000000000b")

// gateOf returns a gate as those of memory and processors are.
func gateOf(size int64, patience time.Duration) *admit.Gate {
	return admit.New(admit.Config{Name: "test", Size: size, Each: max(1, size-size/4), Patience: patience})
}

// ask begins to acquire and returns once the work waits or is admitted.
func ask(t *testing.T, b *admit.Gate, tenant uuid.UUID, weight int64, admitted func()) *func() {
	t.Helper()
	release := new(func())
	go func() {
		done, err := b.Acquire(t.Context(), tenant, weight)
		if err != nil {
			t.Error(err)
			return
		}
		*release = done.Done
		admitted()
	}()
	synctest.Wait()
	return release
}

func TestTheTenantThatHoldsLeastIsNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(4, 0)
		var order []string
		as := func(name string) func() { return func() { order = append(order, name) } }
		first := ask(t, b, alice, 3, as("alice 1"))
		second := ask(t, b, bob, 1, as("bob 1"))
		third := ask(t, b, alice, 1, as("alice 2")) // before bob, but alice holds 3
		fourth := ask(t, b, bob, 1, as("bob 2"))
		(*second)()
		synctest.Wait()
		(*first)()
		synctest.Wait()
		want := []string{"alice 1", "bob 1", "bob 2", "alice 2"}
		for i, name := range want {
			if i >= len(order) || order[i] != name {
				t.Fatalf("%q, want %q", order, want)
			}
		}
		(*third)()
		(*fourth)()
	})
}

func TestATenantLeavesAQuarterToTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(8, 0)
		admitted := 0
		count := func() { admitted++ }
		held := []*func(){ask(t, b, alice, 2, count), ask(t, b, alice, 2, count), ask(t, b, alice, 2, count), ask(t, b, alice, 2, count)}
		if admitted != 3 {
			t.Fatalf("alice holds %d times 2 of 8", admitted)
		}
		other := ask(t, b, bob, 2, count)
		if admitted != 4 {
			t.Fatal("bob waits behind alice")
		}
		for _, release := range []*func(){held[0], held[1], held[2], other} {
			(*release)()
		}
		synctest.Wait()
		if admitted != 5 {
			t.Fatal("what waited for its tenant's share was not admitted")
		}
		(*held[3])()
		whole := ask(t, b, alice, 8, count) // alone, all of it
		if admitted != 6 {
			t.Fatal("a tenant that holds nothing does not get the whole budget")
		}
		(*whole)()
	})
}

func TestHeavyWorkIsNotOvertakenForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(4, 0)
		tenants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		heavy, light := false, 0
		first := ask(t, b, tenants[0], 1, func() {})
		whole := ask(t, b, tenants[1], 4, func() { heavy = true })
		last := ask(t, b, tenants[2], 1, func() { light++ })
		if light > 0 {
			t.Fatal("light work overtook the heavy work that was before it")
		}
		(*first)()
		synctest.Wait()
		if !heavy || light > 0 {
			t.Fatalf("heavy admitted: %v, light: %d", heavy, light)
		}
		(*whole)()
		synctest.Wait()
		(*last)()
	})
}

func TestWorkThatMustWaitTooLongIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(2, time.Second)
		held := ask(t, b, alice, 2, func() {})
		_, err := b.Acquire(t.Context(), bob, 2)
		if !errors.Is(err, session.ErrOverCapacity) {
			t.Errorf("after its patience: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := b.Acquire(short, bob, 1); !errors.Is(err, session.ErrOverCapacity) {
			t.Errorf("at its deadline: %v", err)
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, leave)
		if _, err := b.Acquire(gone, bob, 1); !errors.Is(err, context.Canceled) || errors.Is(err, session.ErrOverCapacity) {
			t.Errorf("of a caller who left: %v", err)
		}
		if _, err := b.Acquire(t.Context(), bob, 3); !errors.Is(err, session.ErrTooHeavy) {
			t.Errorf("more than there is: %v", err)
		}
		(*held)()
		(*held)() // does nothing
		for _, tenant := range []uuid.UUID{alice, bob} {
			release, err := b.Acquire(t.Context(), tenant, 2)
			if err != nil {
				t.Fatalf("what gave up still holds: %v", err)
			}
			release.Done()
		}
	})
}

func TestATenantsLineHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(1, 0)
		held := ask(t, b, alice, 1, func() {})
		ctx, cancel := context.WithCancel(t.Context())
		var refused atomic.Int64
		var group sync.WaitGroup
		for range 300 {
			group.Go(func() {
				if _, err := b.Acquire(ctx, alice, 1); errors.Is(err, session.ErrOverCapacity) {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if refused.Load() != 300-256 {
			t.Errorf("%d of 300 were refused at once", refused.Load())
		}
		cancel()
		group.Wait()
		(*held)()
	})
}

func TestWithoutAGateAllWorkIsAdmitted(t *testing.T) {
	t.Parallel()
	var none *admit.Gate
	release, err := none.Acquire(t.Context(), alice, math.MaxInt64)
	if err != nil || none.Size() != math.MaxInt64 {
		t.Fatal(err)
	}
	release.Done()
}

// At every moment what is held is within the budget, and in the end all was admitted.
func TestNoMoreIsAdmittedThanThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 20).Draw(t, "total")
		b := gateOf(total, 0)
		var taken atomic.Int64
		var group sync.WaitGroup
		for range rapid.IntRange(1, 30).Draw(t, "work") {
			tenant := uuid.UUID{15: byte(rapid.IntRange(0, 3).Draw(t, "tenant"))}
			weight := rapid.Int64Range(1, total).Draw(t, "weight")
			group.Go(func() {
				release, err := b.Acquire(context.Background(), tenant, weight)
				if err != nil {
					t.Error(err)
					return
				}
				if now := taken.Add(weight); now > total {
					t.Errorf("%d are held of %d", now, total)
				}
				taken.Add(-weight)
				release.Done()
			})
		}
		group.Wait()
	})
}

// Steps of work that has begun are not refused, however many wait; and who rests holds nothing.
func TestStepsWaitForTheirShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(1, time.Second)
		const steps, heavy, light = 400, 1 << 20, 1 << 10
		mine := admit.Processors{Gate: b, Tenant: alice}
		held := ask(t, b, bob, 1, func() {})
		var now, done, highest atomic.Int64
		var group sync.WaitGroup
		for range steps {
			group.Go(func() {
				err := mine.Step(t.Context(), heavy, func(h *admit.Step) error {
					highest.Store(max(highest.Load(), now.Add(1)))
					now.Add(-1)
					defer now.Add(1)
					defer now.Add(-1)
					return h.Rest(func() { time.Sleep(time.Minute) }) // all at once
				})
				if err != nil {
					t.Error(err)
				}
				done.Add(1)
			})
		}
		time.Sleep(time.Hour)
		if highest.Load() > 0 {
			t.Error("a heavy step had a share that somebody else holds")
		}
		if err := mine.Step(t.Context(), light, func(*admit.Step) error { return nil }); err != nil {
			t.Error("a light step:", err)
		}
		began := time.Now()
		(*held)()
		group.Wait()
		if done.Load() != steps || highest.Load() != 1 || time.Since(began) > 2*time.Minute {
			t.Errorf("%d of %d steps were done, %d at once, in %v", done.Load(), steps, highest.Load(), time.Since(began))
		}
		again := ask(t, b, bob, 1, func() {})
		(*again)()
	})
}

func TestAStepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := gateOf(1, 0)
		held := ask(t, b, bob, 1, func() {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := admit.Processors{Gate: b, Tenant: alice}.Step(ctx, 1<<20, func(*admit.Step) error { return errors.New("it ran") })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		(*held)()
		release, err := b.Acquire(t.Context(), bob, 1)
		if err != nil {
			t.Fatal("a step that gave up holds its share:", err)
		}
		release.Done()
	})
}
