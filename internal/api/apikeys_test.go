package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// makeKey makes a key over HTTP.
func (w *world) makeKey(body string) protocol.NewKey {
	w.Helper()
	return decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", "/v1/keys", body))
}

// code asks with a key and returns the status, with the code of an error.
func (w *world) code(key, method, path, body string) (int, string) {
	w.Helper()
	got := w.ask(method, path, body, "Authorization", "Bearer "+key)
	if got.Code < http.StatusBadRequest {
		return got.Code, ""
	}
	return got.Code, decoded[problem](got).Code
}

func TestNobodyGivesAwayMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	admin := w.newKey(session.ScopeAdmin, session.SessionsRead, session.SessionsWrite)
	for body, missing := range map[string]string{
		`{"scopes":["sessions:read","erase"]}`: "erase", `{"role":"viewer"}`: "results:read", `{"role":"admin"}`: "results:read", `{"scopes":["sessions:read"]}`: "",
	} {
		got := w.ask("POST", "/v1/keys", body, "Authorization", "Bearer "+admin)
		if missing == "" && got.Code != http.StatusCreated || missing != "" && (got.Code != http.StatusForbidden || decoded[problem](got).Scope != missing) {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	full := w.makeKey(`{"role":"admin"}`)
	if code, why := w.code(admin, "POST", "/v1/keys/"+full.ID.String()+"/rotate", ""); code != http.StatusForbidden || why != "scope_missing" {
		t.Errorf("rotating a key with more scopes: %d %s", code, why)
	}
	if code, why := w.code(admin, "POST", "/v1/sessions/s/tokens", ""); code != http.StatusForbidden || why != "scope_missing" {
		t.Errorf("a token that reads results: %d %s", code, why)
	}
	for path, body := range map[string]string{
		"PATCH /v1/sessions/s": `{"policy":{"target":0.3}}`, "PUT /v1/sessions/t": `{"policy":{"target":0.3}}`, "POST /v1/sessions": `{"policy":{"target":0.3}}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		if code, why := w.code(admin, method, path, body); code != http.StatusForbidden || why != "scope_missing" {
			t.Errorf("%s: a policy by a key without the scope: %d %s", path, code, why)
		}
	}
	if code, _ := w.code(admin, "PATCH", "/v1/sessions/s", `{"metadata":{"a":"b"}}`); code != http.StatusOK {
		t.Errorf("a session's metadata: %d", code)
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for body, advice := range map[string]string{
		`{}`:                                   "at least one scope or a role",
		`{"scopes":[]}`:                        "at least one scope or a role",
		`{"role":"viewer","scopes":["erase"]}`: "and not both",
		`{"role":"root"}`:                      "viewer, operator, admin",
		`{"scopes":["read"]}`:                  "there are sessions:read, sessions:write",
		`{"role":"viewer","ttl_seconds":0}`:    "from 1 to 315360000",
		`{"role":"viewer","name":7}`:           "must be a string",
		`{"role":"viewer","name":"a\u202eb"}`:  "direction of text",
		`{"role":"viewer","tenant":"x"}`:       "is not known",
	} {
		if got := w.ask("POST", "/v1/keys", body); got.Code/100 != 4 || !strings.Contains(got.Body.String(), advice) {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	_, stranger := w.newTenant("stranger")
	mine := w.makeKey(`{"role":"viewer"}`).ID.String()
	for _, path := range []string{"DELETE /v1/keys/" + mine, "POST /v1/keys/" + mine + "/rotate", "DELETE /v1/keys/" + uuid.NewString(), "DELETE /v1/keys/x"} {
		method, path, _ := strings.Cut(path, " ")
		if code, why := w.code(stranger, method, path, ""); code != http.StatusNotFound || why != "not_found" {
			t.Errorf("%s of another tenant: %d %s", path, code, why)
		}
	}
}

func TestAKeyIsShownOnceAndNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.makeKey(`{"name":"ci","role":"viewer","ttl_seconds":60}`)
	operator := decoded[protocol.NewOperatorKey](w.must(http.StatusCreated, "POST", "/v1/admin/keys", `{"name":"ops","ttl_seconds":60}`))
	if life := made.ExpiresAt.Sub(made.CreatedAt); life != time.Minute || made.Last4 != made.Text[len(made.Text)-4:] || !slices.Equal(made.Scopes, session.Viewer.Scopes()) {
		t.Errorf("made %+v", made)
	}
	for path, text := range map[string]string{"/v1/keys": made.Text, "/v1/admin/keys": operator.Text} {
		if list := w.must(http.StatusOK, "GET", path, ""); strings.Contains(list.Body.String(), text) || !strings.Contains(list.Body.String(), text[len(text)-4:]) {
			t.Errorf("%s: %s", path, list.Body)
		}
	}
	for table, text := range map[string]string{"api_keys": made.Text, "operator_keys": operator.Text} {
		if found := w.count(`SELECT count(*) FROM ` + table + ` t WHERE t::text LIKE '%` + text[len(text)-20:] + `%'`); found != 0 {
			t.Errorf("%s has a key's text", table)
		}
	}
}

// TestEveryKeyReadsItself asks with keys of two tenants that may do little, and with one of an operator.
func TestEveryKeyReadsItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := func(path, key string) string {
		return w.must(http.StatusOK, "GET", path, "", "Authorization", "Bearer "+key).Body.String()
	}
	made := w.makeKey(`{"name":"ci","scopes":["results:read"]}`)
	if got := decoded[session.OwnKey](w.must(http.StatusOK, "GET", "/v1/key", "", "Authorization", "Bearer "+made.Text)); got.Tenant != w.tenant || got.TenantName != "acme" || got.ID != made.ID || got.Name != "ci" {
		t.Errorf("the key is %+v", got)
	}
	other, stranger := w.newTenant("stranger")
	if got := own("/v1/key", stranger); !strings.Contains(got, other.String()) || strings.Contains(got, w.tenant.String()) {
		t.Errorf("another tenant's key is %s", got)
	}
	operator := w.newOperator()
	if got := own("/v1/admin/key", operator); !strings.Contains(got, operator[len(operator)-4:]) {
		t.Errorf("the operator's key is %s", got)
	}
}

func TestARotatedKeyLivesOnForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.makeKey(`{"name":"ci","role":"operator"}`)
	path := "/v1/keys/" + old.ID.String() + "/rotate"
	fresh := decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", path, `{"overlap_seconds":3600}`))
	if *fresh.Replaces != old.ID || fresh.Name != "ci" || !slices.Equal(fresh.Scopes, old.Scopes) || fresh.ExpiresAt != nil {
		t.Errorf("rotated %+v", fresh)
	}
	for _, key := range []string{old.Text, fresh.Text} {
		if code, _ := w.code(key, "GET", "/v1/sessions", ""); code != http.StatusOK {
			t.Errorf("within the overlap: %d", code)
		}
	}
	listed := decoded[protocol.List[session.APIKey]](w.must(http.StatusOK, "GET", "/v1/keys?limit=2", "")).Data
	if left := time.Until(*listed[1].ExpiresAt); listed[1].ID != old.ID || left > time.Hour || left < 50*time.Minute {
		t.Errorf("the old key ends in %v: %+v", left, listed)
	}
	if again := w.must(http.StatusConflict, "POST", path, ""); !strings.Contains(again.Body.String(), `"key_rotated"`) || !strings.Contains(again.Body.String(), fresh.ID.String()) {
		t.Errorf("a second rotation does not name the newer key %s: %s", fresh.ID, again.Body)
	}
	again := decoded[protocol.NewKey](w.must(http.StatusCreated, "POST", "/v1/keys/"+fresh.ID.String()+"/rotate", `{"overlap_seconds":0}`))
	if again.ExpiresAt != nil || *again.Replaces != fresh.ID {
		t.Errorf("the newer key rotated: %+v", again)
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/keys/"+old.ID.String(), "")
	w.server.ExpireKeys()
	if code, _ := w.code(old.Text, "GET", "/v1/sessions", ""); code != http.StatusUnauthorized {
		t.Errorf("after the overlap: %d", code)
	}
	if code, why := w.code(w.key, "POST", path, ""); code != http.StatusConflict || why != "key_ended" {
		t.Errorf("a third rotation: %d %s", code, why)
	}
}

// TestManyRequestsAtOnceKeepToTheLimits makes keys at the same time, of which a few have room.
func TestManyRequestsAtOnceKeepToTheLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const room, atOnce = 3, 12
	live := w.count(`SELECT count(*) FROM api_keys WHERE tenant_id = '` + w.tenant.String() + `'`)
	w.exec(fmt.Sprintf(`INSERT INTO api_keys (tenant_id, id, digest, last4)
		SELECT '%s', gen_random_uuid(), sha256(n::text::bytea), 'last' FROM generate_series(1, %d) n`, w.tenant, session.MaxLiveKeys-room-live))
	var made atomic.Int32
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			if w.ask("POST", "/v1/keys", `{"role":"viewer"}`).Code == http.StatusCreated {
				made.Add(1)
			}
		})
	}
	if group.Wait(); made.Load() != room {
		t.Errorf("%d were made where %d have room", made.Load(), room)
	}
}

// TestARevocationReachesEveryProcess has another process that believes in a key when the first revokes it.
func TestARevocationReachesEveryProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	there := *w
	there.server = api.New(api.Config{Store: openStore(t, pgtest.API(w.dsn)), Operators: w.admin, Log: w.server.Log, Gate: w.server.Gate})
	made := w.makeKey(`{"role":"viewer"}`)
	operator := decoded[protocol.NewOperatorKey](w.must(http.StatusCreated, "POST", "/v1/admin/keys", `{}`))
	asks := map[string]string{made.Text: "/v1/sessions", operator.Text: "/v1/admin/keys"}
	for key, path := range asks {
		if code, why := there.code(key, "GET", path, ""); code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, why)
		}
	}
	w.must(http.StatusNoContent, "DELETE", "/v1/keys/"+made.ID.String(), "")
	w.must(http.StatusNoContent, "DELETE", "/v1/admin/keys/"+operator.ID.String(), "")
	revoked := time.Now()
	for key, path := range asks {
		there.until("the other process refuses the key", func() bool {
			began := time.Now()
			code, _ := there.code(key, "GET", path, "")
			if code == http.StatusOK && began.Sub(revoked) > 3*time.Second {
				t.Fatalf("%s: the key is accepted %v after its revocation", path, began.Sub(revoked))
			}
			return code == http.StatusUnauthorized
		})
	}
}

func TestTheUseOfAKeyIsNotedBesideTheRequestAndRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const used = `SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL`
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
	w.must(http.StatusOK, "GET", "/v1/admin/keys", "")
	w.until("the use of a tenant's key is noted", func() bool { return w.count(used) == 1 })
	w.exec(`UPDATE api_keys SET last_used_at = last_used_at - interval '4 minutes'`)
	was := w.count(`SELECT extract(epoch FROM last_used_at)::bigint FROM api_keys`)
	w.server.ExpireKeys()
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
	if err := w.store.NoteUse(t.Context(), w.tenant, decoded[protocol.List[session.APIKey]](w.must(http.StatusOK, "GET", "/v1/keys", "")).Data[0].ID); err != nil {
		t.Fatal(err)
	}
	if is := w.count(`SELECT extract(epoch FROM last_used_at)::bigint FROM api_keys`); is != was {
		t.Errorf("the use is noted again after 4 minutes: %d, %d", was, is)
	}
	w.until("an operator's key, too", func() bool {
		w.server.ExpireKeys()
		w.must(http.StatusOK, "GET", "/v1/admin/keys", "")
		return w.count(`SELECT count(*) FROM operator_keys WHERE last_used_at IS NOT NULL`) == 1
	})
}

// TestOperatorsHaveAnAddressOfTheirOwn has the routes of operators kept off the public address.
func TestOperatorsHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server = api.New(api.Config{Store: w.store, Operators: w.admin, OwnOperatorAddr: true, Log: w.server.Log, Gate: w.server.Gate})
	private := func(key, path string) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+key)
		got := httptest.NewRecorder()
		w.server.OperatorsHandler().ServeHTTP(got, r)
		return got.Code
	}
	w.must(http.StatusNotFound, "GET", "/v1/admin/keys", "")
	w.must(http.StatusOK, "GET", "/v1/sessions", "")
	for path, want := range map[string]int{"/v1/admin/keys": 200, "/v1/sessions": 404, "/readyz": 200, "/livez": 200, "/docs": 200} {
		if got := private(w.operator, path); got != want {
			t.Errorf("operators' %s: %d, want %d", path, got, want)
		}
	}
	if got := private(w.key, "/v1/admin/keys"); got != http.StatusForbidden {
		t.Errorf("a tenant's key there: %d", got)
	}
	w.server = api.New(api.Config{Store: w.store, Log: w.server.Log, Gate: w.server.Gate})
	w.must(http.StatusNotFound, "GET", "/v1/admin/keys", "")
	w.must(http.StatusUnauthorized, "GET", "/v1/sessions", "", "Authorization", "Bearer "+w.operator)
}

// TestWithoutRowLevelSecurityTheStatementsKeepTenantsApart takes row-level security away: what is left is that every
// statement names its tenant.
func TestWithoutRowLevelSecurityTheStatementsKeepTenantsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity LOOP
			EXECUTE format('ALTER TABLE %I DISABLE ROW LEVEL SECURITY', name);
		END LOOP; END $$`)
	if n := w.count(`SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity`); n != 0 {
		t.Fatalf("%d tables still have row-level security", n)
	}
	keepsTenantsSeparate(t, w)
}

// TestWithoutATenantInTheStatementTheDatabaseKeepsTenantsApart reads and writes every table of tenants as the API's
// login, by statements that name no tenant, beside a tenant that has something in most of them.
func TestWithoutATenantInTheStatementTheDatabaseKeepsTenantsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.everything()
	mine, _ := w.newTenant("mine")
	rows, err := w.admin.Pool().Query(t.Context(), `
		SELECT c.relname
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
		 WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	filled := 0
	for _, table := range tables {
		if w.count(`SELECT count(*) FROM `+table+` WHERE tenant_id = '`+w.tenant.String()+`'`) > 0 {
			filled++
		}
		for _, sql := range []string{`SELECT tenant_id FROM ` + table, `DELETE FROM ` + table + ` RETURNING tenant_id`, `UPDATE ` + table + ` SET tenant_id = tenant_id RETURNING tenant_id`} {
			touched := 0
			err := postgres.InTenant(t.Context(), w.store.Pool(), mine, pgx.TxOptions{}, func(tx pgx.Tx) error {
				var of uuid.UUID
				rows, err := tx.Query(t.Context(), sql)
				if err == nil {
					_, err = pgx.ForEachRow(rows, []any{&of}, func() error {
						if of != mine {
							touched++
						}
						return nil
					})
				}
				return errors.Join(err, errUndo)
			})
			if touched > 0 || !errors.Is(err, errUndo) {
				t.Errorf("%s: %d rows of another tenant, %v", sql, touched, err)
			}
		}
	}
	if filled < 15 {
		t.Errorf("the other tenant has rows in %d of %d tables", filled, len(tables))
	}
}

var errUndo = errors.New("taken back")
