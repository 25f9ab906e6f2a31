package compact

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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
			checkLaws(q, uint64(seed))
		}()
		if q.bad {
			k := q.log[0]
			if len(k) > 60 {
				k = k[:60]
			}
			count[k]++
			if shown < 14 && !strings.HasPrefix(k, "before, after") {
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

func TestOne(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("S"))
	q := &quiet{}
	l := newLaws(q, uint64(n))
	whole := l.compact(l.in)
	t.Log(l.in.Format, "window", l.in.WindowTokens, "overhead", l.in.OverheadTokens, "target", l.in.Policy.Target*float64(l.in.WindowTokens))
	t.Log(string(l.in.Policy.Document()))
	for _, a := range whole.plan.Actions {
		t.Logf("LOG %+v", a)
	}
	t.Log("entered", whole.plan.Entered)
	rng := l.rng
	_ = rng
	l.deterministic(whole)
	l.otherPolicyRNG()
	in := l.in
	in.Tail = nil
	for at := 0; at < len(l.in.Tail); {
		at += 1 + l.rng.IntN(len(l.in.Tail)-at)
		in.Tail = after(l.in.Tail[:at], in.Base.through())
		last := l.compact(in)
		t.Log("step to", at, "entered", last.plan.Entered)
		for _, a := range last.plan.Actions {
			t.Logf("   %+v", a)
		}
		if last.made.Through > 0 {
			in.Base = last.made
		}
	}
	h := whole.plan.history
	for m := range h.messages {
		t.Log(h.messages[m].seq, h.messages[m].role, h.messages[m].tokens, "unit", h.messages[m].unit, "rel", whole.plan.scene.release[m])
	}
}
func (l *laws) otherPolicyRNG() {}
