package jobs_test

import (
	"encoding/json"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
)

func TestTmp7(t *testing.T) {
	for _, turns := range []int{12, 16, 20} {
		w := newWorld(t)
		w.many(3, turns)
		id := w.recompact(postgres.Recompaction{Policy: json.RawMessage(lean)})
		w.work(jobs.Config{})
		t.Logf("%+v", w.until(id, ended))
	}
}
