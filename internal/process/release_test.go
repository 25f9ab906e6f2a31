// Not under the race detector: its sessions are large.

package process_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/migrations"
)

// The database of testdata/schema29.sql.gz was written by the release whose schema was version 29, through its API:
// sessions in all five formats with their checkpoints, results and runs, among them a session whose job waits for a cold
// cache, one that was rolled back, one that caps results, one of two formats, and imports, one of which waits for the
// rest of its lines. Rows of one session have no fact, and a checkpoint has no walk: a release before had stored them.
// Version 31 gives each message a fact, which going down again keeps.
// testdata/schema29.views.json.gz holds what that release answered to GET /v1/sessions/{id}/context.
const (
	oldSchema  = "testdata/schema29.sql.gz"
	oldViews   = "testdata/schema29.views.json.gz"
	oldVersion = "0029"
)

// renamed are the columns of version 29 that have another name now, "" if they are in another table.
var renamed = map[string]string{
	"sessions.wake":    "armed_threshold",
	"messages.fact":    "shape",
	"checkpoints.walk": "validator_state",

	"result_bodies.codec": "", "result_bodies.body": "",
}

func TestDataOfSchema29SurvivesUpDownUpAndIsServed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewEmpty(t)
	execute(t, dsn, string(unpacked(t, oldSchema)))
	before := rowsOf(t, dsn)
	for i, row := range before["messages"] {
		before["messages"][i] = withFact(t, row)
	}
	slices.Sort(before["messages"])
	want := map[string][]string{}
	for table, rows := range before {
		want[table] = withNewNames(t, table, rows)
	}
	delete(want, "checkpoint_results") // it is made again from the manifests
	for range 2 {
		if err := postgres.Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		compareRows(t, "after up", want, withoutNewColumns(t, rowsOf(t, dsn), want))
		migrateDownTo29(t, dsn)
		compareRows(t, "after down", before, rowsOf(t, dsn))
	}
	if err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	s := startOn(t, config.Database{URL: dsn, Connections: 8}, firstTenant)
	defer s.stop()
	compareViews(s)
	appendAndCompact(s)
}

// repairText is the sentence that explains a repair. Releases may word it differently; rule, kind and seq must not change.
var repairText = regexp.MustCompile(`"detail":"(?:[^"\\]|\\.)*"`)

// newMembers are those that later releases have added to the answer.
var newMembers = regexp.MustCompile(`,"window_tokens":\d+,"over_window":(?:true|false)`)

// compareViews compares every session's view and log, byte for byte but for the sentences of repairs, with the answers
// of the release of schema 29.
func compareViews(s *service) {
	s.Helper()
	var want map[string]string
	if err := json.Unmarshal(unpacked(s.T, oldViews), &want); err != nil {
		s.Fatal(err)
	}
	for name, answer := range want {
		id, full := strings.CutSuffix(name, " full")
		path := "/v1/sessions/" + url.PathEscape(id) + "/context"
		if full {
			path += "?view=full"
		}
		status, got := s.call("GET", path, "")
		answer, got = repairText.ReplaceAllString(answer, ""), repairText.ReplaceAllString(got, "")
		got = newMembers.ReplaceAllString(got, "")
		if id == "waits" && !full && s.checkpoint("/v1/sessions/waits") > 0 {
			continue // the worker was faster: the job that was scheduled at schema 29 has ended
		}
		if status != 200 || got != answer {
			s.Errorf("%s is %d and differs:\n%s", path, status, cmp.Diff(answer, got))
		}
	}
}

// appendAndCompact appends to sessions until they are compacted, the session "waits" by the job that was scheduled at
// schema 29. A manual compaction after them waits for those that are running.
func appendAndCompact(s *service) {
	s.Helper()
	message := `{"format":"openai-chat","messages":[{"role":"user","content":"` + strings.Repeat("go on ", 200) + `"}]}`
	for _, id := range []string{"openai-chat", "anthropic", "openai-responses", "gemini", "ai-sdk", "mixed", "waits"} {
		path := "/v1/sessions/" + id
		before := s.checkpoint(path)
		for range 12 {
			s.must(201, "POST", path+"/messages", message)
		}
		s.must(200, "POST", path+"/compact?wait=60", "")
		s.must(200, "GET", path+"/context", "")
		if after := s.checkpoint(path); after <= before {
			s.Errorf("%s has checkpoint %d before and %d after its compaction", id, before, after)
		}
	}
	if runs := s.must(200, "GET", "/v1/sessions/waits/runs", ""); strings.Contains(runs, `"state":"queued"`) {
		s.Errorf("the run that was queued at schema 29 has not ended: %s", runs)
	}
}

func (s *service) checkpoint(path string) int {
	s.Helper()
	var found struct{ Checkpoint int }
	if err := json.Unmarshal([]byte(s.must(200, "GET", path, "")), &found); err != nil {
		s.Fatal(err)
	}
	return found.Checkpoint
}

// must makes a request and returns its answer, which must have this status.
func (s *service) must(want int, method, path, body string) string {
	s.Helper()
	status, answer := s.call(method, path, body)
	if status != want {
		s.Fatalf("%s %s is %d: %s", method, path, status, answer)
	}
	return answer
}

// rowsOf returns the rows of every table but those about the schema, each as JSON with sorted members.
func rowsOf(t *testing.T, dsn string) map[string][]string {
	t.Helper()
	conn := connect(t, dsn)
	tables := texts(t, conn, `
		SELECT table_name
		  FROM information_schema.tables
		 WHERE table_schema = 'public' AND table_name NOT LIKE 'schema\_%'`)
	found := map[string][]string{}
	for _, table := range tables {
		rows := texts(t, conn, `SELECT to_jsonb(t)::text FROM `+pgx.Identifier{table}.Sanitize()+` t`)
		for i := range rows {
			rows[i] = rename(t, rows[i], func(member string) string { return member })
		}
		slices.Sort(rows)
		found[table] = rows
	}
	return found
}

func withNewNames(t *testing.T, table string, rows []string) []string {
	t.Helper()
	changed := make([]string, len(rows))
	for i, row := range rows {
		changed[i] = rename(t, row, func(member string) string {
			if name, ok := renamed[table+"."+member]; ok {
				return name
			}
			return member
		})
	}
	slices.Sort(changed)
	return changed
}

// withoutNewColumns removes the columns that a table of want does not have.
func withoutNewColumns(t *testing.T, found, want map[string][]string) map[string][]string {
	t.Helper()
	kept := map[string][]string{}
	for table, rows := range want {
		if len(rows) == 0 {
			kept[table] = found[table]
			continue
		}
		known := membersOf(t, rows[0])
		for _, row := range found[table] {
			kept[table] = append(kept[table], rename(t, row, func(member string) string {
				if _, ok := known[member]; !ok {
					return ""
				}
				return member
			}))
		}
		slices.Sort(kept[table])
	}
	return kept
}

// withFact returns a message's row with the fact that version 31 gives those that have none: their format.
func withFact(t *testing.T, row string) string {
	t.Helper()
	message := membersOf(t, row)
	if string(message["fact"]) == "null" {
		message["fact"] = fmt.Appendf(nil, "%q", message["format"])
	}
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func membersOf(t *testing.T, row string) (members map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(row), &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// rename returns a row with other names for its members; those that become "" are removed.
func rename(t *testing.T, row string, name func(string) string) string {
	t.Helper()
	changed := map[string]json.RawMessage{}
	for member, value := range membersOf(t, row) {
		changed[name(member)] = value
	}
	delete(changed, "")
	text, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func compareRows(t *testing.T, when string, want, got map[string][]string) {
	t.Helper()
	for table := range want {
		if diff := cmp.Diff(want[table], got[table]); diff != "" {
			t.Errorf("%s, table %s: before (-), now (+):\n%.2000s", when, table, diff)
		}
	}
}

// migrateDownTo29 runs the down files of the versions after 29, newest first.
func migrateDownTo29(t *testing.T, dsn string) {
	t.Helper()
	names, err := fs.Glob(migrations.FS, "*.down.sql")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, name := range names {
		if name[:len(oldVersion)] <= oldVersion {
			break
		}
		text, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, dsn, string(text))
	}
	execute(t, dsn, `UPDATE schema_migrations SET version = 29`)
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// execute runs statements that need no arguments.
func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	if _, err := connect(t, dsn).PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

func texts(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
	return found
}

func unpacked(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
