package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/llm/fake"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// product is Varve as it runs: the API, a worker, and a provider of models, which is asked over HTTP as the API is.
type product struct {
	*testing.T
	url    string
	key    string
	tenant uuid.UUID
	store  *postgres.Store

	mu    sync.Mutex
	next  map[string][]fake.Step    // what models answer, by their names
	asked map[string][]fake.Request // what they were asked
}

// start starts Varve with models by name, each with the protocol of its provider.
func start(t *testing.T, models map[string]llm.Kind) *product {
	t.Helper()
	dsn := pgtest.New(t)
	p := &product{
		T: t, store: open(t, pgtest.Admin(dsn)), next: map[string][]fake.Step{}, asked: map[string][]fake.Request{},
	}
	tenant := must(p.store.CreateTenant(t.Context(), "acme", policy.StoredDefault()))
	p.tenant, p.key = tenant.ID, session.NewAPIKey(tenant.ID)
	must(p.store.CreateKey(t.Context(), tenant.ID, session.NewKey{Text: p.key, Scopes: session.KeyScopes()}))
	provider := fake.New(fake.Options{Choose: p.choose})
	must(0, provider.Start("127.0.0.1:0"))
	t.Cleanup(provider.Close)
	asks := func(store *postgres.Store) *modelcall.Caller {
		return &modelcall.Caller{Store: store, Models: must(llm.Open(configured(provider.URL(), models), slog.New(slog.DiscardHandler)))}
	}
	served := open(t, pgtest.API(dsn))
	web := httptest.NewServer(api.New(api.Config{Store: served, Caller: asks(served)}))
	t.Cleanup(web.Close)
	p.url = web.URL
	worker := must(jobs.NewClient(p.store.Pool(), jobs.Config{
		Store: p.store, Caller: asks(p.store), Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	}))
	must(0, worker.Start(context.Background()))
	t.Cleanup(func() { _ = worker.StopAndCancel(context.Background()) })
	return p
}

func open(t *testing.T, dsn string) *postgres.Store {
	t.Helper()
	pool := must(postgres.Open(context.Background(), dsn, 12))
	t.Cleanup(pool.Close)
	return postgres.New(pool, must(queue.New(pool)), compactor.CapAtIngest)
}

// configured returns an operator's models at a provider that has each protocol.
func configured(url string, models map[string]llm.Kind) llm.Config {
	c := llm.Config{Providers: map[string]llm.Provider{}, Models: map[string]llm.Definition{}}
	for kind, path := range map[llm.Kind]string{llm.OpenAI: "/v1/", llm.OpenAIResponses: "/v1/", llm.Anthropic: "/"} {
		c.Providers[string(kind)] = llm.Provider{
			Kind: kind, BaseURL: url + path, Key: llm.NewKey("k"), AllowPrivate: true, Attempts: 1,
		}
	}
	for name, kind := range models {
		c.Models[name] = llm.Definition{Provider: string(kind), Model: name, Window: 100_000}
	}
	return c
}

// choose records what a model is asked, and returns its answer: the last one again if there is no other.
func (p *product) choose(r fake.Request) fake.Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.Model] = append(p.asked[r.Model], r)
	steps := p.next[r.Model]
	if len(steps) > 1 {
		p.next[r.Model] = steps[1:]
	}
	return steps[0]
}

// answers sets what a model answers from now on.
func (p *product) answers(model string, steps ...fake.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[model] = steps
}

// requests returns what a model was asked since the last time.
func (p *product) requests(model string) []fake.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.asked[model]
	delete(p.asked, model)
	return all
}

// call asks the API and returns its answer.
func (p *product) call(method, path string, body any) (answer object) {
	request := must(http.NewRequestWithContext(p.Context(), method, p.url+path, bytes.NewReader([]byte(jsonText(body)))))
	request.Header.Set("Authorization", "Bearer "+p.key)
	request.Header.Set("Content-Type", "application/json")
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	all := must(io.ReadAll(response.Body))
	if response.StatusCode >= http.StatusMultipleChoices {
		panic(fmt.Sprintf("%s %s: %s", method, path, all))
	}
	decode(all, &answer)
	return answer
}

// create creates a session with a policy.
func (p *product) create(id string, format session.Format, patch json.RawMessage) {
	p.call("PUT", "/v1/sessions/"+id, object{"format": format, "window_tokens": 1000, "policy": patch})
}

// append appends messages to a session.
func (p *product) append(id string, bodies [][]byte) {
	if len(bodies) == 0 {
		return
	}
	list := make([]json.RawMessage, len(bodies))
	for i, body := range bodies {
		list[i] = body
	}
	p.call("POST", "/v1/sessions/"+id+"/messages", object{"messages": list})
}

// compact has a session compacted, and waits until no job is left of it: none for a summary, and none that takes it in.
func (p *product) compact(id string) {
	p.call("POST", "/v1/sessions/"+id+"/compact?wait=30", object{})
	key := must(p.store.Session(p.Context(), session.Address{Tenant: p.tenant, ID: id})).Key
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		var live bool
		must(0, p.store.Pool().QueryRow(p.Context(), `
			SELECT EXISTS (SELECT
			                 FROM river_job
			                WHERE kind IN ('compact', 'summarise') AND args->>'session' = $1 AND finalized_at IS NULL)`,
			key.String()).Scan(&live))
		if !live {
			return
		}
	}
}

// view returns the messages that a session's next request has.
func (p *product) view(id string) []object {
	return objects(p.call("GET", "/v1/sessions/"+id+"/context", nil)["messages"])
}
