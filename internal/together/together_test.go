package together_test

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
	"github.com/varve-dev/varve/internal/together"
)

var config = together.Config{Slots: 1, Members: 4, Bytes: 100, Patience: time.Second}

// caller lets several goroutines use a queue, and notes the rounds in the order of their beginning.
type caller struct {
	t     *testing.T
	queue *together.Queue[string]
	all   sync.WaitGroup

	mu     sync.Mutex
	rounds []string
	alone  []string
	gone   []string
}

func newCaller(t *testing.T, c together.Config) *caller {
	return &caller{t: t, queue: together.New[string](c)}
}

// do has work done that takes half as long as a round may keep its slot, and far longer if its name ends with "slow".
func (c *caller) do(ctx context.Context, at session.Address, bytes int64, name string) {
	c.all.Go(func() {
		round, err := c.queue.Enter(ctx, at, bytes, name)
		switch {
		case err != nil:
			c.note(&c.gone, name)
		case round == nil:
			c.note(&c.alone, name)
		default:
			_, all := round.Board(ctx)
			c.note(&c.rounds, strings.Join(all, " "))
			wait := config.Patience / 2
			if strings.HasSuffix(name, "slow") {
				wait = 10 * config.Patience
			}
			time.Sleep(wait)
			round.End()
		}
	})
	synctest.Wait()
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
		c, a := newCaller(t, config), uuid.New()
		for i := range 7 {
			c.do(t.Context(), address(a, fmt.Sprint(i)), 1, fmt.Sprint(i))
		}
		if rounds, waiting := c.queue.Load(); rounds != 1 || waiting != 6 {
			t.Errorf("%d rounds, %d wait", rounds, waiting)
		}
		c.all.Wait()
		c.expect("rounds", &c.rounds, "0", "1 2 3 4", "5 6")
		c.do(t.Context(), address(a, "late"), 1, "late")
		c.expect("at once", &c.rounds, "late")
		c.all.Wait()
	})
}

func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, many, few := newCaller(t, config), uuid.New(), uuid.New()
		for i := range 9 {
			c.do(t.Context(), address(many, fmt.Sprint(i)), 1, fmt.Sprint(i))
		}
		c.do(t.Context(), address(few, "few"), 1, "few")
		c.all.Wait()
		c.expect("rounds", &c.rounds, "0", "1 few 2 3", "4 5 6 7", "8")
	})
}

func TestTwoRoundsNeverWriteToOneSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two := config
		two.Slots = 2
		c, a := newCaller(t, two), uuid.New()
		one := address(a, "one")
		c.do(t.Context(), one, 1, "0")
		c.do(t.Context(), one, 1, "1") // there is a slot
		c.expect("rounds", &c.rounds, "0")
		c.do(t.Context(), address(a, "other"), 1, "other")
		c.do(t.Context(), one, 1, "2")
		c.expect("rounds", &c.rounds, "0", "other")
		c.all.Wait()
		c.expect("rounds", &c.rounds, "0", "other", "1 2")
	})
}

func TestARoundThatTakesLongHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, config), uuid.New()
		c.do(t.Context(), address(a, "locked"), 1, "slow")
		c.do(t.Context(), address(a, "locked"), 1, "same")
		c.do(t.Context(), address(a, "other"), 1, "other")
		c.expect("rounds", &c.rounds, "slow")
		time.Sleep(config.Patience)
		synctest.Wait()
		c.expect("rounds", &c.rounds, "slow", "other")
		c.expect("alone", &c.alone, "same")
		c.do(t.Context(), address(a, "locked"), 1, "later")
		c.expect("alone", &c.alone, "same", "later")
		c.all.Wait()
		c.do(t.Context(), address(a, "locked"), 1, "after")
		c.do(t.Context(), address(a, "other"), 1, "behind")
		c.expect("one slot again", &c.rounds, "after")
		c.all.Wait()
		c.expect("rounds", &c.rounds, "after", "behind")
	})
}

func TestWhatIsLargeIsDoneAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, config), uuid.New()
		for i, bytes := range []int64{1, 101, 60, 50, 40} {
			c.do(t.Context(), address(a, fmt.Sprint(i)), bytes, fmt.Sprint(i))
		}
		c.all.Wait()
		c.expect("rounds", &c.rounds, "0", "1", "2 4", "3")
	})
}

func TestWhoGoesLeavesTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a, began := newCaller(t, config), uuid.New(), time.Now()
		c.do(t.Context(), address(a, "0"), 1, "0")
		ctx, cancel := context.WithCancel(t.Context())
		c.do(ctx, address(a, "1"), 1, "1")
		c.do(t.Context(), address(a, "2"), 1, "2")
		cancel()
		synctest.Wait()
		c.expect("gone", &c.gone, "1")
		c.all.Wait()
		c.expect("rounds", &c.rounds, "0", "2")
		if took := time.Since(began); took != config.Patience {
			t.Errorf("two rounds of half the patience took %v", took)
		}
	})
}

// A round is not given up while anybody wants it, and it is when nobody does.
func TestARoundEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue, a := together.New[int](config), uuid.New()
		first, _ := queue.Enter(t.Context(), address(a, "first"), 1, 0)
		var cancel [3]context.CancelFunc
		var round context.Context
		var returned atomic.Int64
		for i := range cancel {
			var ctx context.Context
			ctx, cancel[i] = context.WithCancel(t.Context())
			go func() {
				led, err := queue.Enter(ctx, address(a, fmt.Sprint(i)), 1, i)
				if err != nil {
					t.Error(err)
				}
				if led != nil {
					round, _ = led.Board(ctx)
					<-round.Done()
					led.End()
				}
				returned.Add(1)
			}()
			synctest.Wait()
		}
		first.End()
		synctest.Wait()
		for i, end := range cancel {
			if round.Err() != nil || returned.Load() > 0 {
				t.Errorf("when %d of 3 callers had gone: %v, %d had returned", i, round.Err(), returned.Load())
			}
			end()
			synctest.Wait()
		}
		if !errors.Is(round.Err(), context.Canceled) || returned.Load() != 3 {
			t.Errorf("when all had gone: %v, %d had returned", round.Err(), returned.Load())
		}
	})
}

func TestALineHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := newCaller(t, config), uuid.New()
		for i := range 260 {
			c.do(t.Context(), address(a, fmt.Sprint(i)), 1, fmt.Sprint(i))
		}
		c.do(t.Context(), address(uuid.New(), "other"), 1, "other")
		c.expect("alone", &c.alone, "257", "258", "259")
		c.all.Wait()
	})
}
