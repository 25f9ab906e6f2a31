package peers

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

var recorded = flag.Int("recorded", 127, "of how many renditions TestViewsOfRecordedConversations checks one; make soak has 1")

// TestViewsOfRecordedConversationsAreTaken holds the views of all recorded conversations to the rules of others: as
// they are, and compacted under every profile for three windows as they grow in four steps.
func TestViewsOfRecordedConversationsAreTaken(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	read, _, err := compacttest.Recorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(read) == 0 {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
		return
	}
	r := &reader{Suite: NewSuite(t), known: map[[sha256.Size]byte]bool{}}
	told := time.Now()
	for i := range read {
		r.read(&read[i], i)
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%s: %d of %d conversations, %d renditions", told.Format(time.TimeOnly), i+1, len(read), r.renditions)
		}
	}
	t.Logf("%d conversations under %d profiles, %d views, %d renditions, one of %d of them checked", len(read), len(policy.Profiles()), len(r.known), r.renditions, *recorded)
	r.Report()
}

// reader reads views as many programs would.
type reader struct {
	*Suite
	known      map[[sha256.Size]byte]bool // views that were read, by their digests
	renditions int
}

// read reads conversation number n. Unless all renditions are checked, it is compacted under one profile only.
func (r *reader) read(c *compacttest.Conversation, n int) {
	r.t.Helper()
	log := make([]wire.Stored, len(c.Messages))
	for i, body := range c.Messages {
		log[i] = wire.Stored{Format: c.Format, Body: body, Seq: int64(i + 1)}
	}
	r.render(c.ID, log)
	for i, profile := range policy.Profiles() {
		for j, share := range []int{2, 4, 8} {
			if *recorded > 1 && (i != n%len(policy.Profiles()) || j != n/len(policy.Profiles())%3) {
				continue
			}
			r.grow(fmt.Sprintf("%s under %s in a window of 1/%d", c.ID, profile, share), c, log, profile, 1+c.Total()/share)
		}
	}
}

// grow compacts a conversation as it grows.
func (r *reader) grow(name string, c *compacttest.Conversation, log []wire.Stored, profile string, window int) {
	r.t.Helper()
	const steps = 4
	chosen, err := policy.Profile(profile)
	if err != nil {
		r.t.Fatal(err)
	}
	var base *compact.Checkpoint
	for step := 1; step <= steps; step++ {
		through := int64(0)
		if base != nil {
			through = base.Through
		}
		in := compact.Input{Format: c.Format, Policy: chosen, WindowTokens: window, Base: base}
		in.Tail = entries(c, through, int64(len(log)*step/steps))
		_, made, err := compact.Run(context.Background(), in, nil)
		if err != nil {
			r.t.Fatalf("%s: %v", name, err)
		}
		if made.Through == 0 {
			continue
		}
		base = made
		r.render(fmt.Sprintf("%s, step %d", name, step), viewOf(c.Format, made, log[made.Through:len(log)*step/steps]))
	}
}

func entries(c *compacttest.Conversation, after, through int64) (list []compact.Entry) {
	for seq := after + 1; seq <= through; seq++ {
		e := compact.Entry{Seq: seq, Tokens: c.Tokens[seq-1], Body: c.Messages[seq-1]}
		list = append(list, compact.Divide(c.Format, e)...)
	}
	return list
}

// viewOf returns what a read finds after a compaction.
func viewOf(f session.Format, made *compact.Checkpoint, tail []wire.Stored) (view []wire.Stored) {
	array := append(append([]byte{'['}, made.Body...), ']')
	for element := range rawjson.Elements(array, 0) {
		view = append(view, wire.Stored{Format: f, Body: element.Of(array)})
	}
	return append(view, tail...)
}

// render reads a view for all models and with all treatments of calls without results, or as many of these renditions
// as the test checks. What breaks our own rules is a mistake, too.
func (r *reader) render(name string, view []wire.Stored) {
	r.t.Helper()
	if r.isKnown(view) {
		return
	}
	for _, target := range session.Formats() {
		for _, pending := range pendings {
			r.CheckEach(name, string(target), r.sample(Models), pending == wire.KeepPending, func(model string) ([][]byte, int) {
				o := wire.Options{Model: model, Pending: pending}
				made := wiretest.Render(target, view, o)
				r.checkOwn(name, target, made, o)
				return made.Bodies, made.System
			})
		}
	}
}

// isKnown reports whether a view was read before: profiles make the same of some conversations.
func (r *reader) isKnown(view []wire.Stored) bool {
	h := sha256.New()
	for i := range view {
		fmt.Fprintf(h, "%s %d ", view[i].Format, len(view[i].Body))
		h.Write(view[i].Body)
	}
	digest := [sha256.Size]byte(h.Sum(nil))
	known := r.known[digest]
	r.known[digest] = true
	return known
}

// sample returns the models for which a rendition is checked.
func (r *reader) sample(models []string) (chosen []string) {
	for _, model := range models {
		r.renditions++
		if r.renditions%*recorded == 0 {
			chosen = append(chosen, model)
		}
	}
	return chosen
}
