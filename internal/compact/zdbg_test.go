package compact

import (
	"fmt"
	"os"
"regexp"
	"strconv"
		"testing"
)

type quiet struct {
	testing.TB
	log []string
	bad bool
}

func (q *quiet) Helper()                   {}
func (q *quiet) Errorf(f string, a ...any) { q.bad = true; q.log = append(q.log, fmt.Sprintf(f, a...)) }
func (q *quiet) Fatalf(f string, a ...any) { q.Errorf(f, a...); panic("fatal") }
func (q *quiet) Fatal(a ...any)            { q.Errorf("%s", fmt.Sprint(a...)); panic("fatal") }
func (q *quiet) Logf(f string, a ...any)   {}
func (q *quiet) Failed() bool              { return q.bad }
func TestDbg(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	count := map[string]int{}
	shown := 0
	for seed := 0; seed < n; seed++ {
		q := &quiet{}
		func() {
			defer func() {
				if e := recover(); e != nil {
					q.log = append(q.log, fmt.Sprint("PANIC ", e))
					q.bad = true
				}
			}()
			try(q, uint64(seed), nil, laws...)
		}()
		if q.bad {
			k := regexp.MustCompile(`\d+`).ReplaceAllString(q.log[0], "N")
			if len(k) > 60 {
				k = k[:60]
			}
			count[k]++
			if shown < 14&& count[k]<4 {
				shown++
				s := q.log[0]
				if len(s) > 700 {
					s = s[:700]
				}
				t.Logf("seed %d: %s", seed, s)
			}
		}
	}
	tot := 0
	for k, v := range count {
		tot += v
		if v > 2 {
			t.Logf("%d x %s", v, k)
		}
	}
	t.Log("failing", tot)
}

