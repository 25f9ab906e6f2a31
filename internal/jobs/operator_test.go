package jobs_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/session"
)

// An operator learns of every failed attempt from the log, and of the last one as of an error.
func TestEveryFailedAttemptIsOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.session("s")
	w.fill(at)
	log := w.newLog()
	w.work(jobs.Config{Beat: beat, Log: slog.New(slog.NewTextHandler(log, nil)), Trace: func(step string) {
		if step == "planned" {
			panic("a bug")
		}
	}})
	w.untilSQL("it failed twice", `SELECT EXISTS (SELECT FROM river_job WHERE kind = 'compact' AND attempt = 2 AND state = 'retryable')`)
	w.inTenant(`UPDATE session_failures SET failures = $1`, session.MaxFailures-1)
	w.untilSQL("it is quarantined", `SELECT EXISTS (SELECT FROM river_job WHERE tags = '{quarantined}')`)
	for _, line := range [][]string{
		{"level=WARN", "attempt=1 ", "failures=1 ", "next_try=1s"},
		{"level=WARN", "attempt=2 ", "failures=2 ", "next_try=4s"},
		{"level=ERROR", "quarantined", "attempt=3 ", "failures=8 ", "next_try=5m0s"},
	} {
		line = append(line, "session=s ", "tenant="+w.tenant.String(), "run=", "class=own", "a bug")
		if log.line(line...) == "" {
			t.Errorf("no line has all of %v", line)
		}
	}
	if n := log.count("a bug"); n != 3 {
		t.Errorf("three attempts are %d lines", n)
	}
	runs, err := w.store.Runs(t.Context(), at, session.Page{Limit: 10})
	if err != nil || len(runs) != 2 || runs[0].Error == nil || !strings.HasPrefix(*runs[0].Error, "quarantined: panic: a bug") {
		t.Errorf("runs %+v, %v", runs, err)
	}
	found, err := w.store.Session(t.Context(), at)
	if err != nil || found.Failing == nil || found.Failing.QuarantinedAt == nil || found.Failing.Failures != session.MaxFailures {
		t.Errorf("the session says %+v, %v", found.Failing, err)
	}
}

// The gauges are the process's: this test has them to itself, because it is not parallel.
func TestTheGaugesShowWhatWaitsAndWhatFails(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"quarantined", "failing", "waits", "waits too"} {
		w.fill(w.session(id))
	}
	later := func(id, state, tag string) {
		_, err := w.store.Pool().Exec(t.Context(), `
			UPDATE river_job
			   SET state = $2::river_job_state, tags = ARRAY[$3], scheduled_at = now() + interval '110 s', created_at = now() - interval '100 s'
			 WHERE args ->> 'session' = $1`, w.keyOf(id), state, tag)
		if err != nil {
			t.Fatal(err)
		}
	}
	later("quarantined", "scheduled", "quarantined")
	later("failing", "retryable", "failing")
	later("waits", "scheduled", "x")
	later("waits too", "scheduled", "x")
	w.work(jobs.Config{Beat: beat})
	want := map[string]float64{
		"varve_sessions_quarantined{}": 1, "varve_sessions_failing{}": 1, `varve_sessions_due{hard}`: 4, `varve_sessions_due{trigger}`: 0,
		"varve_jobs{compaction scheduled}": 3, "varve_jobs{compaction retryable}": 1,
	}
	var got map[string]float64
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got = gauges(t)
		wrong := got["varve_jobs_oldest_seconds{compaction retryable}"] < 100
		for name, value := range want {
			wrong = wrong || got[name] != value
		}
		if !wrong {
			return
		}
		if time.Now().After(until) {
			break
		}
	}
	t.Errorf("the gauges are %v", got)
}

// keyOf returns the key of a session.
func (w *world) keyOf(id string) string {
	w.Helper()
	found, err := w.store.Session(w.Context(), session.Address{Tenant: w.tenant, ID: id})
	if err != nil {
		w.Fatal(err)
	}
	return found.Key.String()
}

// gauges returns this process's gauges and counters by name and the values of their labels.
func gauges(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			name := fmt.Sprintf("%s{%s}", family.GetName(), strings.Join(labels, " "))
			switch {
			case m.GetGauge() != nil:
				found[name] = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				found[name] = m.GetCounter().GetValue()
			}
		}
	}
	return found
}
