package alerts

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/varve-dev/varve/internal/embedded"
)

// fault is something that goes wrong, and the alerts that must fire then. make returns what mends it.
type fault struct {
	name   string
	alerts string
	make   func(w *world) (heal func())
	minute func(w *world) // what happens in each minute until the alerts fire
}

// Each alert is provoked while those of the faults before may still fire.
var faults = []fault{
	{"appends wait for the lock of their session", "VarveAppendsSlow", func(w *world) func() {
		w.session()
		return func() {}
	}, func(w *world) {
		path := fmt.Sprintf("/v1/sessions/s%d", w.sessions)
		release := w.locked(`SELECT FROM sessions WHERE key = ` + key(path) + ` FOR UPDATE`)
		time.AfterFunc(1200*time.Millisecond, release)
		w.grow(path, 1)
	}},
	{"the API's role may not write messages", "VarveErrors", func(w *world) func() {
		w.session()
		w.exec(`REVOKE INSERT ON messages FROM varve_app`)
		return func() { w.exec(`GRANT INSERT ON messages TO varve_app`) }
	}, func(w *world) {
		w.ask("POST", fmt.Sprintf("/v1/sessions/s%d/messages", w.sessions), w.turns(1))
	}},
	{"messages are locked, and many append", "VarveConnectionsShort VarveRefuses", func(w *world) func() {
		for range 24 {
			w.session()
		}
		return w.locked(`LOCK TABLE messages`)
	}, func(w *world) {
		w.asked.Wait()
		for i := range 100 {
			path := fmt.Sprintf("/v1/sessions/s%d/messages", w.sessions-i%24)
			w.asked.Go(func() { w.ask("POST", path, w.turns(1)) })
		}
		time.Sleep(time.Second) // they wait while the metrics are scraped
	}},
	{"checkpoints cannot be written", "VarveTriggerWithoutCheckpoint VarveQueueOld VarveCompactionsFail", func(
		w *world,
	) func() {
		heal := w.locked(`LOCK TABLE checkpoints IN SHARE ROW EXCLUSIVE MODE`)
		for range 12 {
			w.grow(w.session(), 40)
		}
		w.exec(`UPDATE river_job SET scheduled_at = now() - interval '10 minutes', created_at = now() - interval '1 hour'
			WHERE state = 'available'`)
		w.readGauges()
		return heal
	}, nil},
	{
		"bytes on the disk change",
		"VarveViewsDegraded VarveDamaged VarveVerifyFound VarveQuarantined",
		func(w *world) func() {
			view, message := w.compacted(), w.session()
			w.grow(message, 8)
			w.exec(`UPDATE checkpoints SET body = overlay(body PLACING 'damaged' FROM 50) WHERE session_key = ` + key(view))
			w.exec(`UPDATE messages SET body = 'x' WHERE seq = 2 AND session_key = ` + key(message))
			w.ask("GET", view+"/context", "")
			w.ask("POST", message+"/compact?wait=10", "")
			return func() {}
		},
		func(w *world) {
			w.exec(`INSERT INTO river_job (args, kind, max_attempts, queue, state, priority)
				VALUES ('{}', 'verify', 1, 'verification', 'available', 1)`) // a slice of the sessions
		},
	},
	{"the model and the receiver of webhooks fail", "VarveModelNotAsked VarveWebhooksFail", func(w *world) func() {
		w.down.Store(true)
		for range 4 {
			w.compacted()
		}
		w.readGauges()
		return func() { w.down.Store(false) }
	}, nil},
	{"the file of models is half written", "VarveModelsStale", func(w *world) func() {
		w.write("models.json", models[:60])
		return func() { w.write("models.json", models) }
	}, nil},
	{"the API is dead", "VarveNoAPI", func(w *world) func() { w.kill["api"](); return w.startAPI }, nil},
	{"the worker is dead", "VarveNoWorker", func(w *world) func() { w.kill["worker"](); return func() {} }, nil},
}

// allIsWell does ordinary work for longer than any alert waits.
func (w *world) allIsWell() {
	w.Helper()
	path := w.session()
	for minute := range 40 {
		w.grow(path, 4)
		w.must("GET", path+"/context", "")
		w.must("POST", path+"/tools/list_results", `{"arguments":{},"call_id":"c1"}`)
		if minute%10 == 0 {
			w.compacted()
		}
		w.scrape()
	}
	w.readGauges() // a session may have been due when they were read, which is many of these minutes ago
	w.scrape()
}

// readGauges waits until the worker has read the gauges of the database, which it does every 15 seconds.
func (w *world) readGauges() { time.Sleep(16 * time.Second) }

// locked holds a lock of the database until it is told to release it.
func (w *world) locked(sql string) (release func()) {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.database.DSN(embedded.Database))
	if err != nil {
		w.Fatal(err)
	}
	if _, err := conn.Exec(w.Context(), `BEGIN; `+sql); err != nil {
		w.Fatal(err)
	}
	return func() { _ = conn.Close(w.Context()) }
}

// labelled returns the matcher of all series that have a label.
func labelled(name string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchNotEqual, name, "")
}
