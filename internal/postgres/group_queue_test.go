package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

var oneSlot = groupLimits{slots: 1, members: 4, bytes: 100, patience: time.Second}

// caller lets several goroutines use a queue, and notes the groups in the order of their beginning.
type caller struct {
	t     *testing.T
	queue *groups
	all   sync.WaitGroup

	mu     sync.Mutex
	names  map[*appending]string
	groups []string
	alone  []string
	gone   []string
}

func newCaller(t *testing.T, limits groupLimits) *caller {
	return &caller{t: t, queue: newGroups(limits), names: map[*appending]string{}}
}

// do has work done that takes half as long as a group may keep its slot, and far longer if its name ends with "slow".
func (c *caller) do(ctx context.Context, at session.Address, bytes int64, name string) {
	c.all.Go(func() {
		a := appendingTo(at, bytes)
		c.mu.Lock()
		c.names[a] = name
		c.mu.Unlock()
		group, err := c.queue.enter(ctx, a)
		switch {
		case err != nil:
			c.note(&c.gone, name)
		case group == nil:
			c.note(&c.alone, name)
		default:
			_, all := group.fill(ctx)
			c.note(&c.groups, c.namesOf(all))
			wait := oneSlot.patience / 2
			if strings.HasSuffix(name, "slow") {
				wait = 10 * oneSlot.patience
			}
			time.Sleep(wait)
			group.end()
		}
	})
	synctest.Wait()
}

func appendingTo(at session.Address, bytes int64) *appending {
	return &appending{Append: session.Append{Session: at}, params: appendParams{bytes: bytes}}
}

func (c *caller) namesOf(all []*appending) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, a := range all {
		names = append(names, c.names[a])
	}
	return strings.Join(names, " ")
}

func (c *caller) note(list *[]string, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*list = append(*list, name)
}

// expect compares what a list has at its end.
func (c *caller) expect(what string, list *[]string, want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := *list; len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		c.t.Errorf("%s: %q, want %q at the end", what, got, want)
	}
}

func address(tenant uuid.UUID, id string) session.Address {
	return session.Address{Tenant: tenant, ID: id}
}

func TestWhatArrivesWhileTheSlotIsTakenIsDoneTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, oneSlot), uuid.New()
		for i := range 7 {
			c.do(t.Context(), address(a, fmt.Sprint(i)), 1, fmt.Sprint(i))
		}
		if groups, waiting := c.queue.load(); groups != 1 || waiting != 6 {
			t.Errorf("%d groups, %d wait", groups, waiting)
		}
		c.all.Wait()
		c.expect("groups", &c.groups, "0", "1 2 3 4", "5 6")
		c.do(t.Context(), address(a, "late"), 1, "late")
		c.expect("at once", &c.groups, "late")
		c.all.Wait()
	})
}

func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, many, few := newCaller(t, oneSlot), uuid.New(), uuid.New()
		for i := range 9 {
			c.do(t.Context(), address(many, fmt.Sprint(i)), 1, fmt.Sprint(i))
		}
		c.do(t.Context(), address(few, "few"), 1, "few")
		c.all.Wait()
		c.expect("groups", &c.groups, "0", "1 few 2 3", "4 5 6 7", "8")
	})
}

func TestTwoGroupsNeverWriteToOneSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two := oneSlot
		two.slots = 2
		c, a := newCaller(t, two), uuid.New()
		one := address(a, "one")
		c.do(t.Context(), one, 1, "0")
		c.do(t.Context(), one, 1, "1") // there is a slot
		c.expect("groups", &c.groups, "0")
		c.do(t.Context(), address(a, "other"), 1, "other")
		c.do(t.Context(), one, 1, "2")
		c.expect("groups", &c.groups, "0", "other")
		c.all.Wait()
		c.expect("groups", &c.groups, "0", "other", "1 2")
	})
}

func TestAGroupThatTakesLongHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, oneSlot), uuid.New()
		c.do(t.Context(), address(a, "locked"), 1, "slow")
		c.do(t.Context(), address(a, "locked"), 1, "same")
		c.do(t.Context(), address(a, "other"), 1, "other")
		c.expect("groups", &c.groups, "slow")
		time.Sleep(oneSlot.patience)
		synctest.Wait()
		c.expect("groups", &c.groups, "slow", "other")
		c.expect("alone", &c.alone, "same")
		c.do(t.Context(), address(a, "locked"), 1, "later")
		c.expect("alone", &c.alone, "same", "later")
		c.all.Wait()
		c.do(t.Context(), address(a, "locked"), 1, "after")
		c.do(t.Context(), address(a, "other"), 1, "behind")
		c.expect("one slot again", &c.groups, "after")
		c.all.Wait()
		c.expect("groups", &c.groups, "after", "behind")
	})
}

func TestWhatIsLargeIsDoneAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, oneSlot), uuid.New()
		for i, bytes := range []int64{1, 101, 60, 50, 40} {
			c.do(t.Context(), address(a, fmt.Sprint(i)), bytes, fmt.Sprint(i))
		}
		c.all.Wait()
		c.expect("groups", &c.groups, "0", "1", "2 4", "3")
	})
}

func TestWhoGoesLeavesTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a, began := newCaller(t, oneSlot), uuid.New(), time.Now()
		c.do(t.Context(), address(a, "0"), 1, "0")
		ctx, cancel := context.WithCancel(t.Context())
		c.do(ctx, address(a, "1"), 1, "1")
		c.do(t.Context(), address(a, "2"), 1, "2")
		cancel()
		synctest.Wait()
		c.expect("gone", &c.gone, "1")
		c.all.Wait()
		c.expect("groups", &c.groups, "0", "2")
		if took := time.Since(began); took != oneSlot.patience {
			t.Errorf("two groupss of half the patience took %v", took)
		}
	})
}

// A group is not given up while anybody wants it, and it is when nobody does.
func TestAGroupEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue, a := newGroups(oneSlot), uuid.New()
		first, _ := queue.enter(t.Context(), appendingTo(address(a, "first"), 1))
		var cancel [3]context.CancelFunc
		var group context.Context
		var returned atomic.Int64
		for i := range cancel {
			var ctx context.Context
			ctx, cancel[i] = context.WithCancel(t.Context())
			go func() {
				led, err := queue.enter(ctx, appendingTo(address(a, fmt.Sprint(i)), 1))
				if err != nil {
					t.Error(err)
				}
				if led != nil {
					group, _ = led.fill(ctx)
					<-group.Done()
					led.end()
				}
				returned.Add(1)
			}()
			synctest.Wait()
		}
		first.end()
		synctest.Wait()
		for i, end := range cancel {
			if group.Err() != nil || returned.Load() > 0 {
				t.Errorf("when %d of 3 callers had gone: %v, %d had returned", i, group.Err(), returned.Load())
			}
			end()
			synctest.Wait()
		}
		if !errors.Is(group.Err(), context.Canceled) || returned.Load() != 3 {
			t.Errorf("when all had gone: %v, %d had returned", group.Err(), returned.Load())
		}
	})
}

func TestALineHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, oneSlot), uuid.New()
		for i := range 260 {
			c.do(t.Context(), address(a, fmt.Sprint(i)), 1, fmt.Sprint(i))
		}
		c.do(t.Context(), address(uuid.New(), "other"), 1, "other")
		c.expect("alone", &c.alone, "257", "258", "259")
		c.all.Wait()
	})
}
