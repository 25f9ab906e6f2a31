package admit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

// twenty returns the gates of 20 connections, of which 14 are for interactive work.
func twenty() *admit.Connections { return admit.NewConnections(20, 0) }

// fill takes all connections that a tenant gets without waiting.
func fill(ctx context.Context, g *admit.Connections, tenant uuid.UUID) (held []admit.Turn) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for {
		turn, err := g.Acquire(ctx, admit.Interactive, tenant)
		if err != nil {
			return held
		}
		held = append(held, turn)
	}
}

func TestWhoComesNextFindsConnections(t *testing.T) {
	t.Parallel()
	ctx, g := t.Context(), twenty()
	all, first := g.Size(admit.Interactive)
	var got []int
	for left := all; left > 0; {
		held := fill(ctx, g, uuid.New())
		if len(held) == 0 {
			t.Fatalf("tenant %d got none of the %d that are left", len(got)+1, left)
		}
		got, left = append(got, len(held)), left-len(held)
	}
	if all != 14 || got[0] != first || got[0] < all/2 || got[0] > all*3/4 || len(got) < 3 {
		t.Errorf("of %d connections the tenants, one after the other, got %v; the first one should get %d", all, got, first)
	}
}

func TestATurnGoesToEachTenantInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, g := t.Context(), twenty()
		var held []admit.Turn
		for turns := fill(ctx, g, uuid.New()); len(turns) > 0; turns = fill(ctx, g, uuid.New()) {
			held = append(held, turns...)
		}
		var mu sync.Mutex
		var order []string
		wait := func(name string, tenant uuid.UUID) {
			go func() {
				turn, err := g.Acquire(ctx, admit.Interactive, tenant)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				turn.Done()
			}()
			synctest.Wait()
		}
		a, b := uuid.New(), uuid.New()
		for i := range 3 {
			wait(fmt.Sprint("a", i), a)
		}
		wait("b0", b)
		held[0].Done() // goes from one to the next
		synctest.Wait()
		if fmt.Sprint(order) != "[a0 b0 a1 a2]" {
			t.Errorf("the turns went to %v", order)
		}
	})
}

func TestTheErrorSaysWhoseWorkIsInTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, g := t.Context(), twenty()
		many, few := uuid.New(), uuid.New()
		fill(ctx, g, many)
		if _, err := g.Acquire(ctx, admit.Interactive, many); !errors.Is(err, session.ErrTenantBusy) {
			t.Errorf("the tenant that has its share got %v", err)
		}
		for len(fill(ctx, g, uuid.New())) > 0 { // until nothing is left
		}
		if _, err := g.Acquire(ctx, admit.Interactive, few); !errors.Is(err, session.ErrOverCapacity) {
			t.Errorf("a tenant that has nothing got %v", err)
		}
		if turn, err := g.Acquire(ctx, admit.Bulk, few); err != nil {
			t.Errorf("bulk work got %v from a gate whose interactive connections are taken", err)
		} else {
			turn.Done()
		}
		if turn, err := (*admit.Connections)(nil).Acquire(ctx, admit.Interactive, few); err != nil {
			t.Errorf("work without gates got %v", err)
		} else {
			turn.Done()
		}
	})
}

func TestWhoGivesUpGetsNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, g := t.Context(), twenty()
		a := uuid.New()
		held := fill(ctx, g, a)
		left, cancel := context.WithCancel(ctx)
		go func() {
			if _, err := g.Acquire(left, admit.Interactive, a); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		for i := range held {
			held[i].Done()
		}
		if again := fill(ctx, g, a); len(again) != len(held) {
			t.Errorf("%d connections, after a caller gave up %d", len(held), len(again))
		}
	})
}

func TestWritersOfASessionWaitInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, g := t.Context(), twenty()
		one := session.Address{Tenant: uuid.New(), ID: "one"}
		first, _ := g.Write(ctx, one)
		second, err := g.Write(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		busy := 0
		for i := range 200 {
			go func() {
				pen, err := g.Write(ctx, one)
				if errors.Is(err, session.ErrSessionBusy) {
					busy++
					return
				}
				order = append(order, i)
				pen.Done()
			}()
			synctest.Wait()
		}
		if busy != 200-128 {
			t.Errorf("%d of 200 were refused at once, with room for 128", busy)
		}
		other, err := g.Write(ctx, session.Address{Tenant: one.Tenant, ID: "other"})
		if err != nil {
			t.Error(err)
		}
		other.Done()
		first.Done()
		synctest.Wait()
		if len(order) != 128 || order[0] != 0 || order[127] != 127 {
			t.Errorf("the turns went to %v", order)
		}
		second.Done()
		if third, err := g.Write(ctx, one); err != nil {
			t.Error(err)
		} else {
			third.Done()
		}
	})
}

func TestAWriterDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, g := t.Context(), twenty()
		one := session.Address{Tenant: uuid.New(), ID: "one"}
		for range 2 {
			if _, err := g.Write(ctx, one); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Write(ctx, one); !errors.Is(err, session.ErrSessionBusy) {
			t.Error(err)
		}
	})
}
