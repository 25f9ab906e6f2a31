package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/jobs/jobstest"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

// provider is a fake provider, and what asks it.
type provider struct {
	*fake.Server
	caller *modelcall.Caller
}

// provider starts a provider that has the model "small".
func (w *world) provider(o fake.Options) *provider {
	w.Helper()
	server := fake.New(o)
	if err := server.Start("127.0.0.1:0"); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(server.Close)
	models, err := llm.Open(llm.Config{
		Providers: map[string]llm.Provider{"here": {
			Kind: llm.OpenAI, BaseURL: server.URL() + "/v1/", Key: llm.NewKey("k"), AllowPrivate: true, Attempts: 1,
		}},
		Models: map[string]llm.Definition{"small": {
			Provider: "here", Model: "small-1", Window: 100_000, Price: llm.Price{Input: 1, Output: 4},
		}},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		w.Fatal(err)
	}
	return &provider{Server: server, caller: &modelcall.Caller{Store: jobstest.OpenStore(w.T, pgtest.Admin(w.dsn)), Models: models}}
}

// asks makes the session's policy name the model, with a stand-in of this kind.
func (w *world) asks(at session.Address, fallback policy.Fallback) {
	w.Helper()
	w.set(at, func(p *policy.Policy) {
		p.Summarise.Model, p.Summarise.Fallback, p.Summarise.MinTokens = "small", fallback, 0
		p.Trim.Enabled, p.Arguments.Enabled, p.Dedupe.Enabled = false, false, false
	})
}

// talk appends turns of talk until the session has crossed its trigger of 8,000 tokens.
func (w *world) talk(at session.Address) (bodies [][]byte) {
	w.Helper()
	for n := range 24 {
		bodies = append(bodies, talked("user", n), talked("assistant", n))
	}
	w.append(at, bodies...)
	return bodies
}

func talked(role string, n int) []byte {
	text := strings.Repeat("We keep the port 5433 of replica "+string(rune('a'+n))+" as it is, and go on. ", 12)
	body, _ := json.Marshal(map[string]string{"role": role, "content": text})
	return body
}

// quiet waits until no job of compactions or summaries is live.
func (w *world) quiet() {
	w.Helper()
	w.awaits(`NOT EXISTS (SELECT FROM river_job WHERE kind IN ('compact', 'summarise') AND finalized_at IS NULL)`)
}

// awaits waits until a condition holds in the database.
func (w *world) awaits(condition string) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		var holds bool
		if err := w.store.Pool().QueryRow(ctx, `SELECT `+condition).Scan(&holds); err != nil {
			w.Fatal(err)
		}
		if holds {
			return
		}
	}
}

// summaries returns the summaries of a session.
func (w *world) summaries(at session.Address) []session.Summary {
	w.Helper()
	found, err := w.store.Session(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	list, err := w.store.Summaries(w.Context(), session.Key{Tenant: w.tenant, Key: found.Key})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

// inView reports whether a text is in the view.
func (w *world) inView(at session.Address, text string) bool {
	w.Helper()
	for _, body := range w.view(at) {
		if strings.Contains(string(body), text) {
			return true
		}
	}
	return false
}

// canary is a word that only the model writes. What the check of claims looks at, such as a number, would be refused.
const canary = "marigold"

// good returns a good answer to every request, with a text that is known.
func good(fake.Request) fake.Step {
	return fake.Step{Text: "<retain>The port is 5433.</retain>\n<summary>" + "The " + canary + " replicas keep their port.</summary>"}
}

func TestAStandInIsServedUntilTheModelHasAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := make(chan struct{})
	var asked sync.Once
	waits := make(chan struct{})
	p := w.provider(fake.Options{Choose: func(r fake.Request) fake.Step {
		asked.Do(func() { close(waits) })
		<-answer
		return good(r)
	}})
	at, other := w.session("s"), w.session("other")
	w.asks(at, policy.ExtractInstead)
	w.work(jobs.Config{Caller: p.caller})
	log := w.talk(at)
	<-waits // the model is asked: the checkpoint is committed
	before, err := w.store.Session(t.Context(), at)
	if err != nil || before.Checkpoint != 1 || w.inView(at, canary) {
		t.Fatalf("while the model is asked: checkpoint %d, %v", before.Checkpoint, err)
	}
	log = append(log, talked("user", 1))
	w.append(at, log[len(log)-1])
	w.fill(other)
	w.settle()
	if found := w.check(other, filled()); found.Checkpoint == 0 {
		t.Error("another session waits for the model")
	}
	if state := w.summaries(at)[0].State; state != session.SummaryAsking {
		t.Errorf("the summary is %s, want %s", state, session.SummaryAsking)
	}
	close(answer)
	w.quiet()
	after := w.check(at, log)
	if after.Checkpoint != 2 || !w.inView(at, canary) || after.ContextTokens > before.ContextTokens+200 {
		t.Errorf("after the answer: checkpoint %d, %d tokens, before %d; %q", after.Checkpoint, after.ContextTokens,
			before.ContextTokens, w.view(at)[0])
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || runs[0].Cause != "summary" || !strings.Contains(runs[0].Reason, "by small is there") {
		t.Errorf("%+v, %v", runs, err)
	}
	s := w.summaries(at)[0]
	if s.State != session.SummaryAnswered || s.Provenance.Provider != "here" || s.Provenance.Spent.CostMicros == 0 {
		t.Errorf("%+v", s)
	}
}

func TestAProviderThatWantsToBeLeftAloneForLongFailsTheSummaryAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const after = 10 * time.Hour
	p := w.provider(fake.Options{Choose: func(fake.Request) fake.Step {
		return fake.Step{Fault: fake.Limited, RetryAfter: after}
	}})
	at := w.session("s")
	w.asks(at, policy.ExtractInstead)
	w.work(jobs.Config{Caller: p.caller})
	began := time.Now()
	log := w.talk(at)
	w.quiet()
	s := w.summaries(at)
	if len(s) != 1 || s[0].State != session.SummaryFailed || !strings.Contains(s[0].Reason, "limits the rate") {
		t.Fatalf("%+v", s)
	}
	if s[0].AskAfter == nil || s[0].AskAfter.Before(began.Add(after)) {
		t.Errorf("it is asked for again at %v, %v after the beginning", s[0].AskAfter, after)
	}
	if n := len(p.Calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
	w.check(at, log)
}

func TestAnAnswerThatIsKeptIsPaidOnceWhoeverDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.provider(fake.Options{Choose: good})
	at := w.session("s")
	w.asks(at, policy.ExtractInstead)
	dies, ends := make(chan struct{}), make(chan struct{})
	var once sync.Once
	// It has one place for summaries, so that it takes no other job while it is thought dead.
	w.work(jobs.Config{Caller: p.caller, Summaries: 1, Beat: time.Hour, Trace: func(step string) {
		if step == "answered" { // and kept, but the summary's row does not say so yet
			once.Do(func() { close(dies) })
			<-ends
		}
	}})
	log := w.talk(at)
	<-dies
	w.exec(`UPDATE workers SET dead_at = now()`)
	w.work(jobs.Config{Caller: p.caller, Beat: 50 * time.Millisecond})
	w.quiet()
	close(ends) // its end changes nothing
	if calls := p.Calls(); len(calls) != 1 {
		t.Errorf("%d calls", len(calls))
	}
	if w.check(at, log); !w.inView(at, canary) {
		t.Error("the answer is not in the view")
	}
}

// refusesUntil returns what has a model refuse every request until credit is set.
func refusesUntil(credit *atomic.Bool) func(fake.Request) fake.Step {
	return func(r fake.Request) fake.Step {
		if credit.Load() {
			return good(r)
		}
		return fake.Step{Fault: fake.Refusal}
	}
}

// TestASummaryThatWasGivenUpIsAskedForAnew: a checkpoint may be restored, or imported, that waits for one.
func TestASummaryThatWasGivenUpIsAskedForAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var credit atomic.Bool
	p := w.provider(fake.Options{Choose: refusesUntil(&credit)})
	at := w.session("s")
	w.asks(at, policy.KeepInstead)
	w.work(jobs.Config{Caller: p.caller})
	w.talk(at)
	w.quiet()
	credit.Store(true)
	w.inTenant(`UPDATE summaries SET state = 'superseded', request = NULL`)
	w.inTenant(`DELETE FROM model_answers`) // has the refusal
	w.compactAgain(at)
	if !w.inView(at, canary) {
		t.Errorf("the model is not asked again: %+v", w.summaries(at))
	}
}

// TestARestoredCheckpointAsksForItsSummaryAgain restores a checkpoint whose model has failed, after another was made that
// no model is asked for.
func TestARestoredCheckpointAsksForItsSummaryAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var credit atomic.Bool
	p := w.provider(fake.Options{Choose: refusesUntil(&credit)})
	at := w.session("s")
	w.asks(at, policy.ExtractInstead)
	w.work(jobs.Config{Caller: p.caller})
	w.talk(at)
	w.quiet()
	first, err := w.store.Session(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	w.set(at, func(p *policy.Policy) { p.Trigger, p.Target = 0.4, 0.1 })
	w.compactAgain(at)
	w.asks(at, policy.ExtractInstead)
	restored, _, err := w.store.Restore(t.Context(), at, first.Checkpoint, nil)
	if err != nil || restored.N == first.Checkpoint+1 {
		t.Fatalf("%+v, %v: no checkpoint was made in between", restored, err)
	}
	shown, err := compactor.Summaries(t.Context(), w.store, at, 0)
	if err != nil || len(shown.Summaries) == 0 || !strings.HasSuffix(shown.Summaries[0].Reason, "the next compaction asks for it again") {
		t.Errorf("%+v, %v", shown, err)
	}
	credit.Store(true)
	w.inTenant(`DELETE FROM model_answers`) // has the refusal
	w.compactAgain(at)
	if s := w.summaries(at); s[0].State != session.SummaryAnswered || !w.inView(at, canary) {
		t.Errorf("the model is not asked again: %+v", s)
	}
}

// compactAgain has a session compacted, and waits until its models have answered.
func (w *world) compactAgain(at session.Address) {
	w.Helper()
	if _, _, err := w.store.Compact(w.Context(), at, nil); err != nil {
		w.Fatal(err)
	}
	w.quiet()
}

func TestASummaryThatNobodyWantsAnyMoreIsNotAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.provider(fake.Options{Choose: good})
	at := w.session("s")
	w.asks(at, policy.ExtractInstead)
	w.work(jobs.Config{Caller: p.caller, Trace: func(step string) {
		if step == "summary" { // the job begins
			w.set(at, func(p *policy.Policy) { p.Summarise.Model = "" })
		}
	}})
	w.talk(at)
	w.quiet()
	if s := w.summaries(at)[0].State; s != session.SummarySuperseded {
		t.Errorf("it is %s", s)
	}
	if n := len(p.Calls()); n != 0 {
		t.Errorf("%d calls", n)
	}
}

func TestAPoisonedSummaryIsGoneAfterARebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var clean bool
	p := w.provider(fake.Options{Choose: func(r fake.Request) fake.Step {
		if clean {
			return fake.Step{Text: "<retain>The port is 5433.</retain>\n<summary>The replicas keep their port.</summary>"}
		}
		return good(r)
	}})
	at := w.session("s")
	w.asks(at, policy.ExtractInstead)
	w.work(jobs.Config{Caller: p.caller})
	log := w.talk(at)
	w.quiet()
	if has := w.places(canary); !w.inView(at, canary) || !slices.Equal(has, []string{"answers", "bodies", "summaries"}) {
		t.Fatalf("the summary is not poisoned: it is in %v", has)
	}
	clean = true
	if _, _, err := w.store.Rebuild(t.Context(), at, nil); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	found := w.check(at, log)
	if w.inView(at, canary) || !w.inView(at, "The replicas keep their port") {
		t.Errorf("checkpoint %d: %s", found.Checkpoint, w.view(at)[0])
	}
	for n := 1; n < found.Checkpoint; n++ {
		if _, _, err := w.store.Restore(t.Context(), at, n, nil); n < 3 && !errors.Is(err, session.ErrPruned) {
			t.Errorf("checkpoint %d can be restored: %v", n, err)
		}
	}
	if has := w.places(canary); has != nil {
		t.Errorf("%v have it", has)
	}
}

// places returns the tables of which a column has a text, packed or not.
func (w *world) places(text string) (found []string) {
	w.Helper()
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		w.Fatal(err)
	}
	var table string
	var content []byte
	var size int
	look := func() (err error) {
		switch table {
		case "bodies":
			content, err = zframe.Decompress(nil, content, size)
		case "states":
			content, err = unpack.DecodeAll(content, nil)
		}
		if bytes.Contains(content, []byte(text)) && !slices.Contains(found, table) {
			found = append(found, table)
		}
		return err
	}
	err = postgres.InTenant(w.Context(), w.store.Pool(), w.tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.Context(), `
			SELECT 'answers', coalesce(answer, ''), 0 FROM model_answers
			 UNION ALL SELECT 'bodies', body, body_size FROM checkpoints WHERE body IS NOT NULL
			 UNION ALL SELECT 'states', state, 0 FROM checkpoints WHERE state IS NOT NULL
			 UNION ALL SELECT 'checkpoints', convert_to(to_jsonb(c)::text, 'UTF8'), 0 FROM checkpoints c
			 UNION ALL SELECT 'results', convert_to(to_jsonb(r)::text, 'UTF8'), 0 FROM results r
			 UNION ALL SELECT 'runs', convert_to(to_jsonb(r)::text, 'UTF8'), 0 FROM runs r
			 UNION ALL SELECT 'summaries', coalesce(retain, '') || coalesce(summary, ''), 0 FROM summaries`)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&table, &content, &size}, look)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func (w *world) exec(sql string) {
	w.Helper()
	if _, err := w.store.Pool().Exec(w.Context(), sql); err != nil {
		w.Fatal(err)
	}
}

func TestARecompactionAsksModelsOnlyIfItIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.provider(fake.Options{Choose: good})
	at := w.session("s")
	w.work(jobs.Config{Caller: p.caller})
	w.talk(at) // under a policy without a model
	w.quiet()
	w.asks(at, policy.ExtractInstead)
	w.quiet()
	before := len(p.Calls())
	for _, ask := range []bool{false, true} {
		w.recompact(at, p.caller, ask)
		w.quiet()
		if asked := len(p.Calls()) > before; asked != ask || w.inView(at, canary) != ask {
			t.Errorf("with ask %t the model was asked: %t; its summary is in the view: %t", ask, asked, w.inView(at, canary))
		}
	}
}
