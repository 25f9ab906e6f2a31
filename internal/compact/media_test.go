package compact

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// screenshots returns an Anthropic session of results with pictures of these many bytes.
func screenshots(bytes ...int) (list []Entry) {
	add := func(form string, args ...any) {
		list = append(list, Entry{Seq: int64(len(list) + 1), Tokens: 1500, Body: fmt.Appendf(nil, form, args...)})
	}
	add(`{"role":"user","content":"use the computer"}`)
	for n, size := range bytes {
		add(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"computer","input":{"action":"screenshot"}}]}`, n)
		add(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"text","text":"the screen %d"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
			n, n, strings.Repeat("A", size))
	}
	return list
}

func TestTheOldestPicturesLeaveForTheirBytes(t *testing.T) {
	t.Parallel()
	const k = 1 << 10
	for name, c := range map[string]struct {
		sizes  []int
		images int     // images of a request
		leave  []int64 // seqs
	}{
		"within the limit":             {[]int{300 * k, 300 * k, 300 * k}, 0, nil},
		"one over it":                  {[]int{300 * k, 400 * k, 500 * k}, 0, []int64{3}},
		"small ones do not count":      {slices.Repeat([]int{60 * k}, 30), 0, nil},
		"the newest stays":             {[]int{100 * k, 2000 * k}, 0, []int64{3}},
		"one alone stays":              {[]int{2000 * k}, 0, nil},
		"of small ones a third stays":  {slices.Repeat([]int{k}, 7), 15, []int64{3, 5}},
		"a large one between is older": {[]int{100 * k, 2000 * k, 100 * k, 100 * k}, 0, []int64{3, 5}},
	} {
		for _, keeps := range []bool{false, true} {
			p := policy.Default()
			p.MediaBytes, p.Trim.KeepMedia = 1<<20, keeps
			in := Input{Format: session.Anthropic, Policy: p, WindowTokens: 1_000_000, MaxImages: c.images, Tail: screenshots(c.sizes...)}
			plan, made, err := Run(context.Background(), in, nil)
			if err != nil {
				t.Fatal(err)
			}
			var left []int64
			for i, a := range plan.Actions {
				left = append(left, a.Seq)
				if a.Kind != Placeholder || a.Rule != "media_bytes" || a.Ref != plan.Results[i].Ref.String() {
					t.Errorf("%s: %+v", name, a)
				}
				if r := plan.Results[i]; len(r.Stored) < heavyBytes && c.images == 0 || !strings.Contains(string(r.Stored), "AAAA") || !strings.Contains(string(made.Body), r.Ref.String()) {
					t.Errorf("%s: %s is persisted with %d bytes", name, r.Ref, len(r.Stored))
				}
			}
			if !slices.Equal(left, c.leave) {
				t.Errorf("%s: %v leave, not %v", name, left, c.leave)
			}
			again, same, err := Run(context.Background(), Input{Format: in.Format, Policy: p, WindowTokens: in.WindowTokens, MaxImages: c.images, Base: made}, nil)
			if err != nil || again.Changed() || string(same.Body) != string(made.Body) {
				t.Errorf("%s: compacted again it changes: %v", name, err)
			}
		}
	}
}

func TestAToolThatIsProtectedKeepsItsPictures(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	p.MediaBytes, p.Protect.Tools = 1<<20, []string{"computer"}
	in := Input{Format: session.Anthropic, Policy: p, WindowTokens: 1_000_000, Tail: screenshots(900<<10, 900<<10, 900<<10)}
	if plan, _, err := Run(context.Background(), in, nil); err != nil || plan.Changed() {
		t.Errorf("%v, %v", plan.Actions, err)
	}
}
