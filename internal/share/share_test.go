package share_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/share"
)

// at returns a context of interactive work on a gate of 20 connections, of which 14 are for it.
func at(t *testing.T) (context.Context, *share.Gate) {
	g := share.New(share.Config{Connections: 20})
	return share.With(t.Context(), g, share.Interactive), g
}

// fill takes all connections that a tenant gets without waiting.
func fill(ctx context.Context, tenant uuid.UUID) (held []share.Turn) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for {
		turn, err := share.Connection(ctx, tenant)
		if err != nil {
			return held
		}
		held = append(held, turn)
	}
}

func TestWhoComesNextFindsConnections(t *testing.T) {
	t.Parallel()
	ctx, g := at(t)
	all, first := g.Size(share.Interactive)
	var got []int
	for left := all; left > 0; {
		held := fill(ctx, uuid.New())
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
		ctx, _ := at(t)
		var held []share.Turn
		for turns := fill(ctx, uuid.New()); len(turns) > 0; turns = fill(ctx, uuid.New()) {
			held = append(held, turns...)
		}
		var mu sync.Mutex
		var order []string
		wait := func(name string, tenant uuid.UUID) {
			go func() {
				turn, err := share.Connection(ctx, tenant)
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
		ctx, g := at(t)
		many, few := uuid.New(), uuid.New()
		fill(ctx, many)
		if _, err := share.Connection(ctx, many); !errors.Is(err, session.ErrTenantBusy) {
			t.Errorf("the tenant that has its share got %v", err)
		}
		for len(fill(ctx, uuid.New())) > 0 { // until nothing is left
		}
		if _, err := share.Connection(ctx, few); !errors.Is(err, session.ErrOverCapacity) {
			t.Errorf("a tenant that has nothing got %v", err)
		}
		if turn, err := share.Connection(share.With(ctx, g, share.Bulk), few); err != nil {
			t.Errorf("bulk work got %v from a gate whose interactive connections are taken", err)
		} else {
			turn.Done()
		}
		if turn, err := share.Connection(t.Context(), few); err != nil {
			t.Errorf("work without a gate got %v", err)
		} else {
			turn.Done()
		}
	})
}

func TestWhoGivesUpGetsNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := at(t)
		a := uuid.New()
		held := fill(ctx, a)
		left, cancel := context.WithCancel(ctx)
		go func() {
			if _, err := share.Connection(left, a); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		for _, turn := range held {
			turn.Done()
		}
		if again := fill(ctx, a); len(again) != len(held) {
			t.Errorf("%d connections, after a caller gave up %d", len(held), len(again))
		}
	})
}

func TestWritersOfASessionWaitInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := at(t)
		one := session.Address{Tenant: uuid.New(), ID: "one"}
		first, _ := share.Session(ctx, one)
		second, err := share.Session(ctx, one)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		busy := 0
		for i := range 200 {
			go func() {
				pen, err := share.Session(ctx, one)
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
		other, err := share.Session(ctx, session.Address{Tenant: one.Tenant, ID: "other"})
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
		if third, err := share.Session(ctx, one); err != nil {
			t.Error(err)
		} else {
			third.Done()
		}
	})
}

func TestAWriterDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, _ := at(t)
		one := session.Address{Tenant: uuid.New(), ID: "one"}
		for range 2 {
			if _, err := share.Session(ctx, one); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := share.Session(ctx, one); !errors.Is(err, session.ErrSessionBusy) {
			t.Error(err)
		}
	})
}
