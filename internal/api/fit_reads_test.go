package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestParallelReadsNeverExceedTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sizes := []struct{ window, result int }{{32000, 8000}, {128000, 16000}}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		for i, own := range session.Formats() {
			for _, turns := range []int{0, 3} {
				if testing.Short() && (i%2 == 0) != (turns == 0) {
					continue // what came before the reads is told in the messages of a format: one each
				}
				path := fmt.Sprintf("/v1/sessions/%s-%d-%d", own, size.window, turns)
				w.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q,"window_tokens":%d,"overhead_tokens":1000}`, own, size.window))
				w.must(http.StatusCreated, "POST", path+"/messages", batch(string(own), parallelReads(own, 10, size.result, turns)...))
				if v := decoded[fitted](w.must(http.StatusOK, "GET", path+"/context", "")); !v.Over {
					t.Fatalf("%s: the view of %d tokens fits without a cut", path, v.Tokens)
				}
				for _, f := range session.Formats() {
					v := w.checkFits(path, f, "wait=0&format="+string(f), int64(size.window)-1000)
					w.checkReads(path, v, size.result)
				}
			}
		}
	}
}

// checkReads wants all ten results to be cut to about the same size, which fills the window, and to come back whole.
func (w *world) checkReads(path string, v fitted, size int) {
	w.Helper()
	if len(v.Cut) != 10 || v.Tokens < v.Window*8/10 || v.Omitted != nil {
		w.Errorf("%s as %s: %d cut, %d tokens, omitted %+v", path, *v.Format, len(v.Cut), v.Tokens, v.Omitted)
	}
	for i, c := range v.Cut {
		if whole := w.wholeOf(path, c.Ref); whole != prose(i, size) {
			w.Errorf("%s as %s: %s has %d bytes", path, *v.Format, c.Ref, len(whole))
		}
		if c.Kind != "result" || c.TokensAfter*12 < int(v.Tokens) {
			w.Errorf("%s as %s: %+v", path, *v.Format, c)
		}
	}
}
