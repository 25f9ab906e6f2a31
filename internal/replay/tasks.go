package replay

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Task is one measurement.
type Task struct {
	Session *Session
	By      Contender
	Window  int
}

// Tasks lists the measurements that Summarise needs to compare contenders over these windows: each session in the
// windows in which it is long enough to be compacted and, if it is a long one, in all.
func Tasks(sessions []*Session, contenders []Contender, windows []int) (list []Task) {
	for _, s := range sessions {
		for _, window := range windows {
			if !s.Reaches(window) && s.Tokens() < longTokens {
				continue
			}
			for _, by := range contenders {
				list = append(list, Task{s, by, window})
			}
		}
	}
	return list
}

// FactTasks lists the measurements that tell what becomes of planted facts, with these seeds.
//
// Errors: those of Session.Plant.
func FactTasks(sessions []*Session, contenders []Contender, windows []int, seeds int) (list []Task, err error) {
	for _, s := range sessions {
		long := slices.DeleteFunc(slices.Clone(windows), func(window int) bool { return !s.Reaches(window) })
		if len(long) == 0 {
			continue
		}
		for seed := range seeds {
			planted, err := s.Plant(seed + 1)
			if err != nil {
				return nil, err
			}
			for _, window := range long {
				for _, by := range contenders {
					list = append(list, Task{planted, by, window})
				}
			}
		}
	}
	return list, nil
}

// MeasureAll does tasks on all processors, and returns their outcomes in the order of the tasks. It calls done, from
// several goroutines, with the number of those that are done.
func MeasureAll(ctx context.Context, tasks []Task, done func(int)) ([]Outcome, error) {
	outcomes := make([]Outcome, len(tasks))
	failed := make([]error, len(tasks))
	var next, ready atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(tasks) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				t := &tasks[i]
				outcomes[i], failed[i] = Measure(ctx, t.Session, t.By, t.Window)
				done(int(ready.Add(1)))
			}
		})
	}
	workers.Wait()
	return outcomes, errors.Join(append(failed, ctx.Err())...)
}
