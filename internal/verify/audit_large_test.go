// Not under the race detector: it reads too many bytes.

package verify_test

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

var trailRows = flag.Int("trail-rows", 30_000, "how many rows the audit trail has that is verified and exported; up to 1000000 are measured")

// TestALargeTrailTakesTheMemoryOfAPage verifies and exports a long trail, which the database's own function has chained.
// It runs alone, so that what it takes can be told.
func TestALargeTrailTakesTheMemoryOfAPage(t *testing.T) {
	w := newWorld(t, plain)
	const batch = 500
	if _, err := w.admin.Exec(t.Context(), `SELECT set_config('app.tenant_id', $1, false)`, w.tenant.ID.String()); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < *trailRows; n += batch {
		_, err := w.admin.Exec(t.Context(), `
			INSERT INTO audit_trail (tenant_id, actor, actor_id, request, address, action, object, object_id, detail, after)
			SELECT $1::uuid, 'key', $1::uuid, 'req_1f0c7a9be2d34c55a8e67d21b0934fe1', '203.0.113.7:51234', 'policy.change', 'session',
			       'chat-' || n, '{"changed":["policy"]}', '{"trigger":0.8,"keep":{"turns":12}}'
			  FROM generate_series($2::int, $3::int) n`, w.tenant.ID, n, n+batch-1)
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(after int64, limit int) (audit.Page, error) {
		return w.store.TrailPage(t.Context(), w.tenant.ID, after, limit)
	}
	for name, do := range map[string]func() error{
		"verification": func() error {
			v := verify.Verifier{Store: w.store}
			actions := int64(0)
			err := v.Run(t.Context(), verify.Scope{Tenants: []session.Tenant{w.tenant}}, false, func(_, _ int64, r *verify.Report) error {
				if actions += r.Actions; len(r.Findings) > 0 {
					t.Errorf("found %+v", r.Findings[0])
				}
				return nil
			})
			if actions != int64(*trailRows) {
				t.Errorf("%d rows were read", actions)
			}
			return err
		},
		"export": func() error { return audit.Copy(io.Discard, 0, read) },
		"verification of an export": func() error {
			lines, out := io.Pipe()
			go func() { out.CloseWithError(audit.Copy(out, 0, read)) }()
			head, err := audit.Behind(audit.Head{}).Read(lines, func(b audit.Break) error { return fmt.Errorf("row %d: %s", b.N, b.What) })
			if head.N != int64(*trailRows) {
				t.Errorf("the export ends with row %d", head.N)
			}
			return err
		},
	} {
		began := time.Now()
		took, err := heapOf(do)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s of %d rows: %v, %.1f MB", name, *trailRows, time.Since(began).Round(time.Millisecond), float64(took)/1e6)
		if took > 20<<20 {
			t.Errorf("the %s took %d bytes of memory", name, took)
		}
	}
}

// heapOf returns by how much the heap was larger while something was done, what was not collected yet included.
func heapOf(do func() error) (uint64, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // CI collects less
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	start, peak := m.HeapAlloc, m.HeapAlloc
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	}()
	err := do()
	close(done)
	<-sampled
	return peak - start, err
}
