package compact

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

var (
	views  = flag.Int("views", 100, "how many random histories TestEveryCompactedViewIsValid compacts and renders; make soak has 50000")
	points = flag.Int("points", 1, "at how many points TestCorpusViews compacts a conversation under each profile; make soak has 10")
)

// logged is a log of messages of any formats.
type logged []wire.Stored

// entries returns the messages after seq as the engine takes them for a session of a format.
func (l logged) entries(t testing.TB, f session.Format, after, through int64) (entries []Entry) {
	t.Helper()
	part := 0
	for _, m := range l[after:through].said(f) {
		found, err := wire.Inspect(f, m.Body)
		if err != nil {
			t.Fatalf("message %d as %s: %v\n%s", m.Seq, f, err, m.Body)
		}
		if n := len(entries); n == 0 || entries[n-1].Seq != m.Seq {
			part = 0
		}
		e := Entry{Seq: m.Seq, Tokens: found.Tokens, Body: m.Body, Part: part}
		if of := &l[m.Seq-1]; of.Format == f {
			entries = append(entries, Divide(f, e)...)
			continue
		} else if found.Role == "assistant" || found.Role == "model" {
			e.Step = part > 0 && wire.Steps(of.Format, of.Body) != nil
		}
		entries = append(entries, e)
		part += max(len(found.Parts), 1)
	}
	return entries
}

// said returns the messages in one format, runs of others translated.
func (l logged) said(f session.Format) (list []wire.Stored) {
	for i := 0; i < len(l); {
		n := 0
		for i+n < len(l) && l[i+n].Format != f {
			n++
		}
		if n == 0 {
			list = append(list, l[i])
			i++
			continue
		}
		list = append(list, wiretest.Translate(f, l[i:i+n])...)
		i += n
	}
	return list
}

// view returns what a read finds after a compaction.
func (l logged) view(f session.Format, made *Checkpoint) (view []wire.Stored) {
	array := append(append([]byte{'['}, made.Body...), ']')
	for element := range rawjson.Elements(array, 0) {
		view = append(view, wire.Stored{Format: f, Body: element.Of(array)})
	}
	for _, m := range l {
		if m.Seq > made.Through {
			view = append(view, m)
		}
	}
	return view
}

// checkRenditions wants a view to be valid in every format.
func checkRenditions(t testing.TB, name string, view []wire.Stored, o wire.Options) {
	t.Helper()
	for _, target := range session.Formats() {
		made := wiretest.Render(target, view, o)
		for _, v := range wiretest.Validate(target, made.Bodies, o) {
			t.Errorf("%s as %s: message %d breaks %s: %s\n%.2000s", name, target, v.Message, v.Rule, v.Detail, made.Bodies[v.Message])
		}
	}
}

// TestEveryCompactedViewIsValid compacts random histories of several formats under random policies as they grow, and
// reads the views in every format.
func TestEveryCompactedViewIsValid(t *testing.T) {
	t.Parallel()
	const chunks = 4
	for chunk := range chunks {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			t.Parallel()
			for seed := chunk; seed < *views && !t.Failed(); seed += chunks {
				checkGrowing(t, uint64(seed))
			}
		})
	}
}

func checkGrowing(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	own := session.Formats()[rng.IntN(len(session.Formats()))]
	log := randomLog(rng, own)
	in := Input{Format: own, Policy: randomPolicy(rng)}
	tokens := 0
	for _, e := range log.entries(t, own, 0, int64(len(log))) {
		tokens += e.Tokens
	}
	in.WindowTokens = 1 + int(float64(tokens)*(0.2+rng.Float64()))
	for through := int64(0); through < int64(len(log)); {
		through += 1 + rng.Int64N(int64(len(log))-through)
		in.Tail = log.entries(t, own, in.Base.through(), through)
		if _, made := compacted(t, in); made.Through > 0 {
			in.Base = made
		}
		if in.Base == nil {
			continue
		}
		checkRenditions(t, fmt.Sprintf("seed %d, %s of %d messages", seed, own, through), log[:through].view(own, in.Base), wire.Options{})
	}
}

// randomLog returns what one to three programs appended, the first of them in the session's own format.
func randomLog(rng *rand.Rand, own session.Format) (log logged) {
	f := own
	for range 1 + rng.IntN(3) {
		options := compacttest.Options{Messages: 1 + rng.IntN(20), ResultTokens: 5 + rng.IntN(40), Wild: rng.IntN(5) > 0, Steps: rng.IntN(2) * 12}
		for _, body := range compacttest.Session(rng, f, options) {
			log = append(log, wire.Stored{Format: f, Body: body, Seq: int64(len(log) + 1)})
		}
		f = session.Formats()[rng.IntN(len(session.Formats()))]
	}
	return log
}

// recorded returns the recorded conversations, none without their folder.
func recorded(t *testing.T) []compacttest.Conversation {
	t.Helper()
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
	}
	return read
}

// TestCorpusViews compacts every recorded conversation under every profile at random points, and reads the views in
// every format.
func TestCorpusViews(t *testing.T) {
	t.Parallel()
	read := recorded(t)
	if len(read) == 0 {
		return
	}
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "conversation\tformat\tmessages\ttokens\tviews")
	for i := range read {
		c := &read[i]
		if testing.Short() && c.Total() > 30_000 {
			continue
		}
		n := checkRecorded(t, c)
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\n", c.ID, c.Format, len(c.Messages), c.Total(), n)
	}
	_ = table.Flush()
	t.Logf("%d conversations in %d formats under %d profiles\n%s", len(read), len(session.Formats()), len(policy.Profiles()), text.String())
}

// checkRecorded reports how many views it has read.
func checkRecorded(t *testing.T, c *compacttest.Conversation) (n int) {
	t.Helper()
	log := make(logged, len(c.Messages))
	for i, body := range c.Messages {
		log[i] = wire.Stored{Format: c.Format, Body: body, Seq: int64(i + 1)}
	}
	checkRenditions(t, c.ID, log, wire.Options{})
	rng := rand.New(rand.NewPCG(uint64(len(log)), uint64(c.Total())))
	for _, profile := range policy.Profiles() {
		policy, err := policy.Profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		for range *points {
			through := int64(1 + rng.IntN(len(log)))
			in := Input{Format: c.Format, Policy: policy, WindowTokens: 1 + c.Total()/2, Tail: log.entries(t, c.Format, 0, through)}
			_, made := compacted(t, in)
			checkRenditions(t, fmt.Sprintf("%s under %s at %d", c.ID, profile, through), log.view(c.Format, made), wire.Options{})
			n += len(session.Formats())
		}
	}
	return n
}
