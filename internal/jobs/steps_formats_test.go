package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

// TestTheSameContentInAnyFormatEndsAtViewsOfTheSameSize compacts 30 steps, of which an AI SDK message has twelve, in a
// session of each format. The views differ by at most 15 % of the smallest, whatever left one can be read back, and so
// it is where a session of another format has the messages of the AI SDK.
func TestTheSameContentInAnyFormatEndsAtViewsOfTheSameSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := steps(30)
	var sessions []session.Address
	windows := []int{32_000, 128_000}
	if testing.Short() {
		windows = windows[:1]
	}
	for _, window := range windows {
		for _, own := range session.Formats() {
			for _, f := range slices.Compact([]session.Format{own, session.AISDK}) {
				at := w.sessionOf(fmt.Sprintf("%s in %s, %d", f, own, window), window)
				w.appendAs(own, at, []byte(said(own, "user", "Find out why the tests fail.")))
				for _, body := range written(f, list) {
					w.appendAs(f, at, []byte(body))
				}
				sessions = append(sessions, at)
			}
		}
	}
	w.work(jobs.Config{})
	w.settle()
	var sizes []string
	smallest, largest := map[int]int64{}, map[int]int64{}
	for _, at := range sessions {
		found, err := w.store.Session(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		window := found.WindowTokens
		w.checkResults(at, found)
		w.checkView(at, found)
		if smallest[window] == 0 || found.ContextTokens < smallest[window] {
			smallest[window] = found.ContextTokens
		}
		largest[window] = max(largest[window], found.ContextTokens)
		sizes = append(sizes, fmt.Sprintf("%s: %d of %d tokens", at.ID, found.ContextTokens, found.TotalTokens))
	}
	t.Log(strings.Join(sizes, "\n"))
	for window := range smallest {
		if 100*largest[window] > 115*smallest[window] {
			t.Errorf("in a window of %d, the views have %d to %d tokens", window, smallest[window], largest[window])
		}
	}
}
