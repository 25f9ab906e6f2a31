package jobs_test

import (
	"encoding/base64"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

var pictureBytes = flag.Int("picture-bytes", 12<<20, "how large the session is whose compaction is measured; make soak has 500000000")

// peak returns the most memory that this process ever had since the last call, in bytes; 0 where nobody counts it.
func peak() (bytes int) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kilobytes, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			bytes, _ = strconv.Atoi(strings.Fields(kilobytes)[0])
		}
	}
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return bytes << 10
}

// A compaction takes the memory of a few windows, however large its session is. It runs alone, so that what it takes
// can be told.
func TestACompactionOfPicturesTakesTheMemoryOfAWindow(t *testing.T) {
	const size = 1_500_000
	w := newWorld(t)
	at := w.sessionOf("s", 1_000_000)
	w.set(at, func(p *policy.Policy) { p.Trigger, p.Target, p.Hard, p.TriggerBytes = 0.95, 0.9, 1, 0 })
	rng := rand.NewChaCha8([32]byte{})
	w.appendLog(at, session.Anthropic, [][]byte{[]byte(`{"role":"user","content":"use the computer"}`)})
	for n := range *pictureBytes / size {
		raw := make([]byte, size*3/4)
		_, _ = rng.Read(raw)
		w.appendLog(at, session.Anthropic, [][]byte{
			fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"computer","input":{}}]}`, n),
			fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
				n, base64.StdEncoding.EncodeToString(raw)),
		})
	}
	before, began := w.snapshot(at).ViewBytes, time.Now()
	start := peak()
	w.work(jobs.Config{JobTimeout: time.Hour})
	run := w.compactNow(at)
	highest := peak()
	t.Logf("a compaction of %d MB in %s: %s; memory at most %d MB, %d MB before", before>>20, time.Since(began).Round(time.Millisecond), run.State, highest>>20, start>>20)
	if after := w.snapshot(at).ViewBytes; run.State != session.RunDone || after > 10<<20 {
		t.Errorf("the run is %s, %v: %d bytes are left", run.State, run.Error, after)
	}
	if limit := 700 << 20; highest > start+limit {
		t.Errorf("the compaction took more than %d MB", limit>>20)
	}
}
