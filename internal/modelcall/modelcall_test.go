package modelcall

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is a provider, a database and a tenant with a session.
type world struct {
	*testing.T
	provider *fake.Server
	dsn      string
	caller   *Caller
	at       session.Address
	session  uuid.UUID
}

func newWorld(t *testing.T, o fake.Options) *world {
	t.Helper()
	w := &world{T: t, provider: fake.New(o), dsn: pgtest.NewWarm(t)}
	if err := w.provider.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.provider.Close)
	w.caller = w.process()
	w.at = session.Address{Tenant: w.tenant("acme"), ID: "chat"}
	if _, _, err := w.caller.Store.Create(t.Context(), w.at, session.Change{}, nil); err != nil {
		t.Fatal(err)
	}
	found, err := w.caller.Store.Session(t.Context(), w.at)
	if err != nil {
		t.Fatal(err)
	}
	w.session = found.Key
	return w
}

// process returns the caller of another process: it shares nothing with others but the database and the provider.
func (w *world) process() *Caller {
	w.Helper()
	pool := pgtest.Pool(w, pgtest.Worker(w.dsn), 8)
	jobs, err := queue.New(pool)
	if err != nil {
		w.Fatal(err)
	}
	models, err := llm.Open(llm.Config{
		Providers: map[string]llm.Provider{"fake": {
			Kind: llm.OpenAI, BaseURL: w.provider.URL() + "/v1", AllowPrivate: true, Key: llm.NewKey("secret"), Attempts: 1, Concurrency: 16,
			Breaker: llm.Breaker{Failures: 1000},
		}},
		Models: map[string]llm.Definition{"small": {
			Provider: "fake", Model: "small-1", Window: 4000, MaxOutput: 400,
			Price: llm.Price{Input: 0.5, Cached: 0.1, Output: 2},
		}},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		w.Fatal(err)
	}
	return &Caller{Store: postgres.New(pool, jobs, nil), Models: models}
}

func (w *world) tenant(name string) uuid.UUID {
	w.Helper()
	pool := pgtest.Pool(w, pgtest.Admin(w.dsn), 2)
	jobs, err := queue.New(pool)
	if err != nil {
		w.Fatal(err)
	}
	policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)}
	made, err := postgres.New(pool, jobs, nil).CreateTenant(w.Context(), name, policy)
	if err != nil {
		w.Fatal(err)
	}
	return made.ID
}

// patience is how long tests wait for what must come: a machine may have much else to do.
const patience = 10 * time.Minute

// until waits until something is so. It may be called by other goroutines than the test's.
func (w *world) until(what string, isSo func() bool) {
	for end := time.Now().Add(patience); !isSo(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) || w.Context().Err() != nil {
			w.Errorf("not after %v: %s", patience, what)
			return
		}
	}
}

// ask asks for the world's session.
func (w *world) ask(r summary.Request) (session.SummaryAnswer, error) {
	return w.caller.Ask(w.Context(), w.at.Tenant, w.session, "small", r)
}

func (w *world) mustAsk(r summary.Request) session.SummaryAnswer {
	w.Helper()
	answer, err := w.ask(r)
	if err != nil {
		w.Fatal(err)
	}
	return answer
}

// exec runs a statement that sees the world's tenant only, and returns how many rows it changed.
func (w *world) exec(sql string, args ...any) (rows int64) {
	err := postgres.InTenant(w.Context(), w.caller.Store.Pool(), w.at.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(w.Context(), sql, args...)
		rows = tag.RowsAffected()
		return err
	})
	if err != nil {
		w.Error(err)
	}
	return rows
}

// count counts the tenant's rows of a table.
func (w *world) count(table string) (n int) {
	w.Helper()
	n, err := postgres.QueryRow(w.Context(), w.caller.Store, w.at.Tenant, pgx.RowTo[int], `SELECT count(*) FROM `+table)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) spent() (all session.ModelSpending) {
	w.Helper()
	list, err := Calls{w.caller.Store}.Spending(w.Context(), w.at.Tenant, time.Now())
	if err != nil {
		w.Fatal(err)
	}
	if len(list) > 0 {
		all = list[0].ModelSpending
	}
	return all
}

// paid checks that the provider was paid once for each input at most, and returns for how many.
func (w *world) paid() (n int) {
	w.Helper()
	for input, i := range w.provider.Inputs() {
		if n += i.Paid; i.Paid > 1 {
			w.Errorf("input %.20s was paid %d times", input, i.Paid)
		}
	}
	return n
}

// request returns a request of a number of messages, each of about 100 tokens.
func request(messages int) summary.Request {
	r := summary.Request{First: 1, Last: int64(messages), MaxTokens: 300}
	for i := range messages {
		text := fmt.Sprintf("Step %d: the file internal/load/batch%d.go drops the last row of batch %d. ", i, i, 7000+i) +
			strings.Repeat("The agent looked at the next part of the listing and went on. ", 6)
		r.Messages = append(r.Messages, summary.Message{
			Seq: int64(i + 1), Role: []string{"user", "assistant"}[i%2],
			Parts: []summary.Part{{Kind: summary.Text, Text: text}},
		})
	}
	return r
}

func TestAnAnswerIsPaidForOnceWhateverProcessNeedsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	r := request(4)
	if _, ok, err := w.caller.Kept(t.Context(), w.at.Tenant, "small", r); ok || err != nil {
		t.Fatalf("before it was asked: %v, %v", ok, err)
	}
	first := w.mustAsk(r)
	from := first.Provenance
	if from.Model != "small" || from.Provider != "fake" || from.AnsweredBy != "small-1" || from.Calls != 1 || from.Kept != 0 ||
		from.Chunks != 1 || from.SourceDigest != r.Digest().String() || from.PromptVersion != summary.PromptVersion || from.Spent.CostMicros == 0 {
		t.Errorf("provenance %+v", from)
	}
	if w.spent() != from.Spent {
		t.Errorf("spent %+v, but the provenance says %+v", w.spent(), from.Spent)
	}
	other := w.process()
	kept, ok, err := other.Kept(t.Context(), w.at.Tenant, "small", r)
	if err != nil || !ok || kept.Summary != first.Summary || kept.Retain != first.Retain {
		t.Fatalf("kept %+v, %v, %v", kept, ok, err)
	}
	again, err := other.Ask(t.Context(), w.at.Tenant, w.session, "small", r)
	if err != nil || again.Summary != first.Summary || again.Provenance.Kept != 1 || again.Provenance.Spent != (session.ModelSpending{}) {
		t.Errorf("asked again %+v, %v", again.Provenance, err)
	}
	if w.paid() != 1 || w.spent() != from.Spent {
		t.Errorf("%d inputs were paid, spent %+v", w.paid(), w.spent())
	}
	if _, ok, _ := w.caller.Kept(t.Context(), w.tenant("other"), "small", r); ok {
		t.Error("another tenant finds the answer")
	}
}

func TestProcessesThatAskTheSameAtOncePayOnce(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 100)
	release := make(chan struct{})
	w := newWorld(t, fake.Options{Choose: func(fake.Request) fake.Step {
		begun <- struct{}{}
		<-release
		return fake.Step{}
	}})
	var group sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	other := w.process()
	for _, a := range []*Caller{w.caller, other} {
		for range 4 {
			group.Go(func() {
				answer, err := a.Ask(t.Context(), w.at.Tenant, w.session, "small", request(4))
				mu.Lock()
				defer mu.Unlock()
				if answers[answer.Summary]++; err != nil {
					t.Error(err)
				}
			})
		}
	}
	// The other process has looked for the answer and tried to make the call when it has used this many connections.
	pool := other.Store.Pool()
	w.until("the processes ask", func() bool { return len(begun) > 0 && pool.Stat().AcquireCount() >= 4*3 })
	close(release)
	group.Wait()
	if len(answers) != 1 || w.paid() != 1 || w.spent().Calls != 1 {
		t.Errorf("%d different answers, %d inputs paid, spent %+v", len(answers), w.paid(), w.spent())
	}
}

func TestALargeRequestIsDividedAndResumedAfterAFailure(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	calls, broken := 0, true
	w := newWorld(t, fake.Options{Choose: func(fake.Request) fake.Step {
		mu.Lock()
		defer mu.Unlock()
		if calls++; broken && calls > 3 {
			return fake.Step{Fault: fake.Error500}
		}
		return fake.Step{}
	}})
	r := request(120)
	if _, err := w.ask(r); !errors.Is(err, summary.ErrFailed) || !errors.Is(err, llm.ErrUnavailable) {
		t.Fatalf("a part fails: %v", err)
	}
	if w.paid() != 3 {
		t.Errorf("%d parts were paid before the failure, want 3", w.paid())
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	w.caller = w.process()
	answer := w.mustAsk(r)
	if from := answer.Provenance; from.Chunks < 4 || from.Kept != 3 || from.Calls <= from.Chunks-1 || len(from.Keys) != from.Calls {
		t.Errorf("provenance %+v", from)
	}
	if w.paid() != answer.Provenance.Calls {
		t.Errorf("%d inputs were paid for %d calls", w.paid(), answer.Provenance.Calls)
	}
	if n := summary.Check(summary.Answer{Summary: answer.Summary, Retain: answer.Retain}, r); n != nil {
		t.Errorf("the answer cannot replace the messages: %v", n)
	}
	for _, c := range w.provider.Calls() {
		if c.Refused != "" {
			t.Errorf("the provider refused a request: %s", c.Refused)
		}
	}
}

func TestARequestLeavesRoomForWhatTheModelThinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Models: map[string]fake.Model{"small-1": {Window: 4000}}})
	m, _ := w.caller.Models.Named("small")
	m.Reasoning = 2000
	if got := w.mustAsk(request(120)).Provenance; got.Chunks < 3 {
		t.Errorf("%+v", got)
	}
	for _, c := range w.provider.Calls() {
		if c.Refused != "" || c.Request.MaxTokens <= 2000 {
			t.Errorf("a request with a limit of %d: %s", c.Request.MaxTokens, c.Refused)
		}
	}
}

func TestAnEstimateIsNotLessThanWhatARequestCosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	for _, r := range []summary.Request{request(4), request(120)} {
		want, err := w.caller.Estimate("small", r)
		if err != nil {
			t.Fatal(err)
		}
		if w.paid() != 0 && len(r.Messages) == 4 {
			t.Fatal("an estimate asks the model")
		}
		got := w.mustAsk(r).Provenance.Spent
		if got.Calls > want.Calls || got.Output > want.Output || got.CostMicros > 2*want.CostMicros || want.CostMicros > 4*got.CostMicros {
			t.Errorf("%d messages: estimated %+v, spent %+v", len(r.Messages), want, got)
		}
	}
	if _, err := w.caller.Estimate("large", request(1)); !errors.Is(err, ErrUnknownModel) || !strings.Contains(err.Error(), "small") {
		t.Errorf("an unknown model: %v", err)
	}
}

func TestARefusedAnswerIsAskedForOnceMoreWithTheReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	w.provider.Script(fake.Step{Text: "<summary></summary>"})
	from := w.mustAsk(request(4)).Provenance
	if from.Calls != 2 || len(from.Refused) != 1 {
		t.Errorf("provenance %+v", from)
	}
	calls := w.provider.Calls()
	if len(calls) != 2 || !strings.Contains(string(calls[1].Request.Body), summary.ErrEmpty.Error()) || calls[0].Input == calls[1].Input {
		t.Errorf("%d calls, the second was %s", len(calls), calls[len(calls)-1].Request.Body)
	}
}

func TestAnswersThatCannotBeUsedAreNotPaidForAgainUntilTheyAreOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	bad := fake.Step{Text: "<summary></summary>"}
	w.provider.Script(bad, fake.Step{Fault: fake.Cut})
	for range 3 {
		if _, err := w.ask(request(4)); !errors.Is(err, ErrUnusable) || !errors.Is(err, errCut) {
			t.Fatal(err)
		}
	}
	if n := len(w.provider.Calls()); n != 2 || w.spent().Calls != 2 {
		t.Fatalf("%d calls, spent %+v", n, w.spent())
	}
	w.exec(`UPDATE model_answers SET created_at = now() - interval '25 hours'`)
	if _, ok, err := w.caller.Kept(t.Context(), w.at.Tenant, "small", request(4)); ok || err != nil {
		t.Errorf("kept: %v, %v", ok, err)
	}
	if w.mustAsk(request(4)); len(w.provider.Calls()) != 3 {
		t.Errorf("%d calls after a day, want 3", len(w.provider.Calls()))
	}
}

func TestTheBudgetOfARunEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	for name, budget := range map[string]session.ModelBudget{
		"calls": {Calls: 2}, "tokens": {Tokens: 14_000}, "money": {CostMicros: 9_000},
	} {
		w.exec(`DELETE FROM model_answers`)
		w.exec(`DELETE FROM model_spending`)
		w.caller.Budgets = Budgets{Run: budget}
		_, err := w.ask(request(120))
		if !errors.Is(err, ErrBudget) || errors.Is(err, session.ErrModelBudget) || !budget.Allows(w.spent()) || w.spent().Calls == 0 {
			t.Errorf("%s: %v; spent %+v of %+v", name, err, w.spent(), budget)
		}
	}
}

func TestTheBudgetOfADayHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	day := session.ModelBudget{Tokens: 10_000}
	var group sync.WaitGroup
	var mu sync.Mutex
	var failures []error
	for range 4 {
		a := w.process()
		a.Budgets.Day = day
		for i := range 8 {
			group.Go(func() {
				_, err := a.Ask(t.Context(), w.at.Tenant, w.session, "small", request(8+i))
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, err)
			})
		}
	}
	group.Wait()
	failed := 0
	for _, err := range failures {
		if err != nil {
			failed++
			at, transient := Again(err, time.Now())
			if !errors.Is(err, ErrBudget) || transient || at.UTC().Truncate(24*time.Hour) != at.UTC() || time.Until(at) > 24*time.Hour {
				t.Errorf("%v: again at %v, %v", err, at, transient)
			}
		}
	}
	if failed == 0 || failed == len(failures) || !day.Allows(w.spent()) {
		t.Errorf("%d of %d failed, spent %+v", failed, len(failures), w.spent())
	}
	input, output := 0, 0
	for _, c := range w.provider.Calls() {
		input, output = input+c.Usage.Input, output+c.Usage.Output
	}
	if got := w.spent(); int64(input) != got.Input || int64(output) != got.Output || w.paid() != int(got.Calls) {
		t.Errorf("the provider counts %d + %d tokens of %d answers, the ledger %+v", input, output, w.paid(), got)
	}
}

func TestATenantsOwnQuotasAreItsBudgetOfADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	w.caller.Budgets.Day.Calls = 1
	w.mustAsk(request(4))
	if _, err := w.ask(request(5)); !errors.Is(err, session.ErrModelBudget) {
		t.Errorf("beyond the operator's budget: %v", err)
	}
	pool, err := postgres.Open(t.Context(), pgtest.Admin(w.dsn), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := postgres.New(pool, nil, nil).SetQuotas(t.Context(), w.at.Tenant, []byte(`{"model_calls_per_day":2}`)); err != nil {
		t.Fatal(err)
	}
	w.mustAsk(request(5))
}

func TestFailuresSayWhenToAskAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		err       error
		after     time.Duration
		transient bool
	}{
		"down":         {fmt.Errorf("%w: %w", summary.ErrFailed, &llm.Error{Kind: llm.ErrUnavailable}), time.Minute, true},
		"breaker":      {&llm.Error{Kind: llm.ErrOpen, RetryAfter: time.Hour}, time.Hour, true},
		"rejected":     {&llm.Error{Kind: llm.ErrRejected, Status: 400}, 24 * time.Hour, false},
		"too long":     {&llm.Error{Kind: llm.ErrRejected, Status: 413, Reason: llm.ContextLength}, 24 * time.Hour, false},
		"a wrong key":  {&llm.Error{Kind: llm.ErrRejected, Status: 401}, 10 * time.Minute, false},
		"refused":      {&llm.Error{Kind: llm.ErrRefused}, 24 * time.Hour, false},
		"unusable":     {ErrUnusable, 24 * time.Hour, false},
		"of the run":   {ErrBudget, 24 * time.Hour, false},
		"of the day":   {fmt.Errorf("%w: %w", ErrBudget, session.ErrModelBudget), 22 * time.Hour, false},
		"no model":     {ErrUnknownModel, 10 * time.Minute, false},
		"the database": {errors.New("it is away"), time.Minute, true},
	} {
		if at, transient := Again(c.err, now); at != now.Add(c.after) || transient != c.transient {
			t.Errorf("%s: again after %v, %v; want %v, %v", name, at.Sub(now), transient, c.after, c.transient)
		}
	}
}

func TestAnswersOfCallsAreNamesOfRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	keys := w.mustAsk(request(120)).Provenance.Keys
	slices.SortFunc(keys, slices.Compare)
	if n := w.exec(`SELECT FROM model_answers WHERE key = ANY ($1)`, keys); n != int64(len(slices.CompactFunc(keys, slices.Equal))) {
		t.Errorf("%d of %d keys have rows", n, len(keys))
	}
}
