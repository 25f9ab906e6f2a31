package compact

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func TestOne(t *testing.T) {
	for _, f := range strings.Fields(os.Getenv("S")) {
		n := 0
		for _, c := range f {
			n = n*10 + int(c-'0')
		}
		q := &quiet{}
		rng := rand.New(&source{nil, rand.NewPCG(uint64(n), 2)})
		l := newTrial(q, rng)
		l.whole = l.compact(l.in)
		l.walk(rng)
		t.Log("=== seed", n, l.in.Format, "window", l.in.WindowTokens, "overhead", l.in.OverheadTokens, "target", l.in.Policy.Target*float64(l.in.WindowTokens))
		if os.Getenv("P") != "" {
			t.Log(string(l.in.Policy.Document()))
		}
		for _, a := range l.whole.plan.Actions {
			t.Logf("LOG %+v", a)
		}
		t.Log("entered", l.whole.plan.Entered)
		for _, s := range l.steps {
			t.Log("step to", s.end(), "through", s.made.Through, "entered", s.plan.Entered)
			for _, a := range s.plan.Actions {
				t.Logf("   %+v", a)
			}
		}
		a, b := l.whole.view, l.steps[len(l.steps)-1].view
		for i := 0; i < len(a) && i < len(b); i++ {
			if string(a[i].body) != string(b[i].body) {
				t.Logf("-%s\n+%s", a[i].body, b[i].body)
				break
			}
		}
	}
}
