package api_test

import (
	"net/http"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestASessionSaysThatItIsQuarantinedAndIsListedOnlyForItsTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"poison", "well"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
	}
	w.exec(`
		INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, deaths, error, next_try_at, quarantined_at)
		SELECT tenant_id, key, key, 0, 5, 'the worker died', now() + interval '1 hour', now()
		  FROM sessions
		 WHERE id = 'poison'`)
	read := func(id string) *session.Failing {
		return decoded[protocol.Session](w.must(http.StatusOK, "GET", "/v1/sessions/"+id, "")).Failing
	}
	if f := read("poison"); f == nil || f.QuarantinedAt == nil || f.Deaths != 5 || f.Error != "the worker died" || f.Session != "poison" {
		t.Errorf("poison: %+v", f)
	}
	if f := read("well"); f != nil {
		t.Errorf("well: %+v", f)
	}
	listed := decoded[struct{ Data []session.Failing }](w.must(http.StatusOK, "GET", "/v1/admin/failures", ""))
	if len(listed.Data) != 1 || listed.Data[0].Key != read("poison").Key {
		t.Errorf("listed %+v", listed)
	}
	w.must(http.StatusNotFound, "POST", "/v1/admin/failures/well/retry", "")
	retry := func() answer {
		return w.must(http.StatusAccepted, "POST", "/v1/admin/failures/poison/retry", "", "Idempotency-Key", "k")
	}
	first := retry()
	w.exec(`DELETE FROM session_failures`) // its compaction succeeded before the answer arrived
	if again := retry(); id(again) != id(first) || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeated: %s, first %s", again.Body, first.Body)
	}
}
