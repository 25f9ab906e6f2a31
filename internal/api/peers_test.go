package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
	"github.com/varve-dev/varve/test/peers"
)

var generated = flag.Int("generated", 160, "how many messages TestWhatIsAppendedAsSchemasAllowIsReadAsOthersWant appends; make soak has 100,000")

// TestWhatIsAppendedAsSchemasAllowIsReadAsOthersWant appends messages made from the providers' published schemas, as
// they are, and wants the log to have their bytes, views, most of them on the way that reads no JSON, to keep the rules
// of others and our own, and their repairs to list each message that they do not have as it was appended.
func TestWhatIsAppendedAsSchemasAllowIsReadAsOthersWant(t *testing.T) {
	if testing.Short() {
		t.Skip("test/peers has such messages without the API")
	}
	t.Parallel()
	r := &viewReader{world: newWorld(t), suite: peers.NewSuite(t), random: rand.New(rand.NewPCG(15, 8))}
	makers := map[session.Format]*peers.Generator{}
	for _, f := range session.Formats() {
		makers[f] = peers.NewGenerator(t, string(f), r.random)
	}
	made, told := 0, time.Now()
	for n := 0; made < *generated; n++ {
		f := session.Formats()[n%len(session.Formats())]
		path := fmt.Sprintf("/v1/sessions/%s-%d", f, n)
		r.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q}`, f))
		var appended []string
		for range 1 + r.random.IntN(3) {
			bodies := make([]string, 1+r.random.IntN(4))
			for i := range bodies {
				bodies[i] = string(makers[f].Message(t))
			}
			made += len(bodies)
			appended = append(appended, r.appendWhatIsTaken(path, f, bodies)...)
		}
		r.checkLog(path, appended)
		if len(appended) > 0 { // a session without messages has a view without any
			r.check(path, f, f, appended)
			r.check(path, f, r.format(), nil)
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%s: %d of %d messages", told.Format(time.TimeOnly), made, *generated)
		}
	}
	r.suite.Report()
}

// TestRecordedConversationsAreReadAsOthersWant appends recorded conversations in four steps, has a worker compact them
// under one of the profiles after each, and wants views that keep the rules of others and our own.
func TestRecordedConversationsAreReadAsOthersWant(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("internal/wire holds the views of all fixtures to the same rules")
	}
	if corpus() == "" {
		t.Skip("there are no recorded conversations on this machine")
	}
	recorded, _, err := compacttest.Recorded(corpus())
	if err != nil {
		t.Fatal(err)
	}
	r := &viewReader{world: newWorld(t), suite: peers.NewSuite(t), random: rand.New(rand.NewPCG(15, 9))}
	r.work()
	compacted, told := 0, time.Now()
	for i := range recorded {
		if !*wholeCorpus && i%16 != 0 {
			continue
		}
		compacted += r.grow(fmt.Sprintf("/v1/sessions/s%d", i), &recorded[i], policy.Profiles()[i%len(policy.Profiles())])
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%s: %d of %d conversations", told.Format(time.TimeOnly), i+1, len(recorded))
		}
	}
	t.Logf("%d compactions", compacted)
	if compacted == 0 {
		t.Error("nothing was compacted")
	}
	r.suite.Report()
}

// viewReader reads views as many programs would, and holds them to the rules of others and to our own.
type viewReader struct {
	*world
	suite  *peers.Suite
	random *rand.Rand
}

func (r *viewReader) format() session.Format {
	return session.Formats()[r.random.IntN(len(session.Formats()))]
}

// appendWhatIsTaken appends messages in one batch, and returns them. Those that no session can hold are sent alone
// before: they are refused.
func (r *viewReader) appendWhatIsTaken(path string, f session.Format, bodies []string) (taken []string) {
	r.Helper()
	for _, body := range bodies {
		if _, err := wire.Accept(f, []byte(body)); err != nil {
			r.must(http.StatusUnprocessableEntity, "POST", path+"/messages", batch(string(f), body))
		} else {
			taken = append(taken, body)
		}
	}
	if len(taken) > 0 {
		r.must(http.StatusCreated, "POST", path+"/messages", batch(string(f), taken...))
	}
	return taken
}

// checkLog wants the log to be what was appended, byte for byte.
func (w *world) checkLog(path string, want []string) {
	w.Helper()
	var log struct {
		Data []struct{ Message json.RawMessage }
	}
	w.must(http.StatusOK, "GET", path+"/messages", "").into(&log)
	var got []string
	for _, m := range log.Data {
		got = append(got, string(m.Message))
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s: the log is %q, want %q", path, got, want)
	}
}

// grow appends a conversation to a session that may hold an eighth to half of it, and returns how often it was
// compacted.
func (r *viewReader) grow(path string, c *compacttest.Conversation, profile string) (compactions int) {
	r.Helper()
	const steps, smallest = 4, 2000
	window := max(smallest, c.Total()/(2<<r.random.IntN(3)))
	r.must(http.StatusCreated, "PUT", path, fmt.Sprintf(`{"format":%q,"window_tokens":%d,"policy":{"profile":%q}}`, c.Format, window, profile))
	for step := range steps {
		for part := range slices.Chunk(c.Messages[len(c.Messages)*step/steps:len(c.Messages)*(step+1)/steps], 100) {
			r.must(http.StatusCreated, "POST", path+"/messages", batch(string(c.Format), strs(part)...))
		}
		if len(c.Messages)*(step+1)/steps == 0 {
			continue // a session without messages has a view without any
		}
		r.must(http.StatusOK, "POST", path+"/compact?wait=60", "")
		r.check(path, c.Format, c.Format, nil)
		r.check(path, c.Format, r.format(), nil)
	}
	return decoded[session.Session](r.must(http.StatusOK, "GET", path, "")).Checkpoint
}

// check reads a view of a session in a format for some model. If the view is in the session's own format, and all that
// was appended is known, its repairs are checked, too.
func (r *viewReader) check(path string, own, target session.Format, appended []string) {
	r.Helper()
	o := wire.Options{Model: peers.Models[r.random.IntN(len(peers.Models))]}
	o.Pending = []wire.Pending{wire.KeepPending, wire.SynthesizePending, wire.DropPending}[r.random.IntN(3)]
	name := fmt.Sprintf("%s/context?format=%s&model=%s&pending=%s", path, target, o.Model, o.Pending)
	got := r.ask("GET", name, "")
	if got.Code != http.StatusOK {
		r.suite.Found(string(target), peers.Violation{By: "the API", What: fmt.Sprint("answers ", got.Code)},
			fmt.Sprintf("%s: %s\n\t%s", name, got.Body, r.ask("GET", path+"/messages", "").Body))
		return
	}
	read := decoded[struct {
		renderedView
		System json.RawMessage
	}](got)
	for _, v := range wiretest.Validate(target, read.bodies(), o) {
		r.suite.Found(string(target), peers.Violation{By: "our rules", What: v.Rule}, fmt.Sprintf("%s, message %d: %s", name, v.Message, v.Detail))
	}
	r.suite.Check(name, &peers.View{Format: string(target), Models: []string{o.Model}, System: read.System, Messages: read.Messages, Open: o.Pending == wire.KeepPending})
	if own == target && appended != nil {
		r.checkListed(own, appended, read.renderedView)
	}
}

// checkListed wants the repairs of a view to name what it does not have as it was appended, but for the system prompt
// of a provider that takes it beside the messages.
func (r *viewReader) checkListed(f session.Format, appended []string, v renderedView) {
	r.Helper()
	told := map[int64]bool{}
	for _, repair := range v.Repairs {
		told[repair.Seq] = true
	}
	facts, bodies := make([]wire.Facts, len(appended)), make([][]byte, len(appended))
	for i, body := range appended {
		found, err := wire.Inspect(f, []byte(body))
		if err != nil {
			r.Fatal(err)
		}
		facts[i], bodies[i] = found, []byte(body)
	}
	if provider.SeparatesSystem(f) {
		for i := range wire.PinnedHead(facts) {
			told[int64(i+1)] = true
		}
	}
	r.suite.CheckListed(string(f), bodies, v.bodies(), told, v.Repairs)
}
