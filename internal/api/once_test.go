package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/api/request"
)

// unstored says of routes what holds instead of a stored Idempotency-Key.
var unstored = map[string]string{
	"POST /v1/imports":                                "an import has its key, and continues",
	"POST /v1/imports/{import}":                       "each line is written once",
	"POST /v1/sessions/{id}/results":                  "an upload has its key, and continues",
	"POST /v1/sessions/{id}/results/uploads/{upload}": "the offset says where it continues",
	"DELETE /v1/admin/tenants/{tenant}":               "the deletion takes the tenant's keys with it; there is one deletion, which each request gets",
	"POST /v1/responses/compact":                      "what it is sent is not stored; of a conversation, a run is joined",
}

// inProgress is work that a repeated request shows as far as it is by then.
var inProgress = regexp.MustCompile(`"state":.*"finished_at":`)

var namedInPath = regexp.MustCompile(`:(\w+)`)

// keysOf returns what an Idempotency-Key does on an operation.
func (e *examples) keysOf(op apitest.Operation) request.KeyUse {
	for _, r := range e.server.Table() {
		if r.Method == op.Method && namedInPath.ReplaceAllString(r.Path, "{$1}") == op.Path {
			return r.Keys
		}
	}
	e.Errorf("%s %s is no route", op.Method, op.Path)
	return request.KeyIdle
}

// once sends an example. Where it changes something, its change is first cut off before its end, then it is sent three
// times at once, and again, with one Idempotency-Key: it has one effect and one answer.
func (e *examples) once(op apitest.Operation, send func(headers ...string) answer) answer {
	e.Helper()
	name, keys := op.Method+" "+op.Path, e.keysOf(op)
	if !e.repeats || keys == request.KeyIdle || unstored[name] != "" {
		return send()
	}
	key := []string{"Idempotency-Key", uuid.NewString()}
	if keys == request.KeyRefused {
		if got := send(key...); got.Code != http.StatusUnprocessableEntity {
			e.Errorf("%s shows a secret and takes a key: %d %s", name, got.Code, got.Body)
		}
		return send()
	}
	e.cut(name, func() answer { return send(key...) })
	all := make([]answer, 3)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i] = send(key...) })
	}
	group.Wait()
	all = append(all, send(key...))
	isReplay := func(a answer) bool { return a.Header().Get("Idempotent-Replayed") == "true" }
	first := slices.IndexFunc(all, func(a answer) bool { return !isReplay(a) })
	if first < 0 {
		e.Fatalf("%s: no answer is the first: %s", name, all[0].Body)
	}
	for i, a := range all {
		same := a.Code == all[first].Code && a.Body.String() == all[first].Body.String()
		if inProgress.MatchString(a.Body.String()) {
			same = id(a) == id(all[first])
		}
		if !same || i != first && !isReplay(a) {
			e.Errorf("%s: %d %s, then %d %s", name, all[first].Code, all[first].Body, a.Code, a.Body)
		}
	}
	e.Logf("| %s | %s | 1 effect, 3 repeated |", name, [...]string{"", "around the handler", "of the handler"}[keys])
	return all[first]
}

// cut has a request fail where its key is stored, as if the process ended there, and requires that nothing was done.
func (e *examples) cut(name string, send func() answer) {
	e.Helper()
	const trail = `SELECT count(*) FROM audit_trail WHERE action <> 'erasure.finish'`
	before := e.count(trail)
	e.exec(`CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'cut'; END $$;
		CREATE TRIGGER cut BEFORE INSERT ON idempotency FOR EACH ROW EXECUTE FUNCTION cut()`)
	got := send()
	e.exec(`DROP FUNCTION cut CASCADE`)
	after := e.count(trail)
	if got.Code != http.StatusInternalServerError || before != after {
		e.Errorf("%s was cut off: %d %s, and the trail has %d rows more", name, got.Code, got.Body, after-before)
	}
}
