package api_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/embedded"
)

var standbyViews = flag.Int("standby-views", 0, "how many views are read to measure what a standby takes of them")

// takesTheViews measures the CPU time that a view costs the two servers, without a standby and with one. For each
// view that one server alone would answer, both together answer: the standby what its time allows, and the
// primary what its own allows beside that.
func takesTheViews(t *testing.T, r *replicated, views int) {
	r = r.in(t)
	r.without.must(http.StatusCreated, "PUT", "/v1/sessions/viewed", `{"window_tokens":10000000}`)
	for n := range 10 {
		r.without.must(http.StatusCreated, "POST", "/v1/sessions/viewed/messages", batch("openai-chat", turn("openai-chat", n, 1, 2000)...))
	}
	r.catchUp()
	read := func(w *world, n int) (primary, standby time.Duration) {
		beforePrimary, beforeStandby := processorTime(t, r.primary), processorTime(t, r.standby)
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for range n / 8 {
					w.must(http.StatusOK, "GET", "/v1/sessions/viewed/context", "")
				}
			})
		}
		readers.Wait()
		return (processorTime(t, r.primary) - beforePrimary) / time.Duration(n), (processorTime(t, r.standby) - beforeStandby) / time.Duration(n)
	}
	read(r.without, views/10)
	read(r.world, views/10)
	alone, _ := read(r.without, views)
	left, there := read(r.world, views)
	times := float64(alone)/float64(there) + 1 - float64(left)/float64(there)
	t.Logf("a view costs the primary alone %v; with a standby that %v and the primary %v: %.2f times the views", alone, there, left, times)
	if times < 1.8 {
		t.Errorf("a standby makes it %.2f times the views", times)
	}
}

// processorTime returns the CPU time that a cluster has used, its processes that ended included.
func processorTime(t *testing.T, s *embedded.Server) (sum time.Duration) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "pgdata", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	const tick = 10 * time.Millisecond
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		pid, rest, _ := strings.Cut(string(text), " ")
		fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:])
		used := fields[11:13] // of itself
		switch {
		case pid == postmaster:
			used = fields[11:15] // and of those that it waited for
		case fields[1] != postmaster:
			continue
		}
		for _, field := range used {
			n, _ := strconv.Atoi(field)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
