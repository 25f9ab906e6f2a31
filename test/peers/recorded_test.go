package peers

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
	r := &reader{Suite: NewSuite(t)}
	for i := range read {
		if bytes.Contains(bytes.Join(read[i].Messages, nil), []byte("[trimmed for fixture]")) {
			t.Logf("%s is not read: it has no values where its schema wants one of a few words", read[i].ID)
			continue
		}
		r.read(&read[i], i)
	}
	t.Logf("%d conversations under %d profiles, %d renditions, one of %d of them checked", len(read), len(policy.Profiles()), r.renditions, *recorded)
	r.Report()
}

// reader reads views as many programs would.
type reader struct {
	*Suite
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

// combination is how a view is read.
type combination struct {
	target  session.Format
	model   string
	pending wire.Pending
}

// combinations are all ways to read a view.
var combinations = func() (all []combination) {
	for _, target := range session.Formats() {
		for _, model := range Models {
			for _, pending := range pendings {
				all = append(all, combination{target, model, pending})
			}
		}
	}
	return all
}()

// render reads a view in all ways, or in one of as many as the test checks one of.
func (r *reader) render(name string, view []wire.Stored) {
	r.t.Helper()
	for _, c := range combinations {
		r.renditions++
		if r.renditions%*recorded != 0 {
			continue
		}
		made := wiretest.Render(c.target, view, wire.Options{Model: c.model, Pending: c.pending})
		r.Check(name, ViewOf(string(c.target), c.model, made.Bodies, made.System, c.pending == wire.KeepPending))
	}
}
