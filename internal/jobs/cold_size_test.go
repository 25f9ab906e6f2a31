package jobs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
)

// The bounds of what a cold session takes in PostgreSQL, in bytes, indexes included: its row and what finds its object,
// and these with its row of the ledger.
const (
	coldRowBytes = 1200
	coldAllBytes = 1650
	coldCopies   = 15_000
)

// TestAColdSessionTakesLittleRoom freezes a session, gives it many copies, and looks at what they take in all tables.
func TestAColdSessionTakesLittleRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inStore(persist.File)
	at, _ := w.archivable("s")
	w.work(jobs.Config{})
	w.offloaded()
	w.frozen(at)
	rows, all := 0, 0
	for _, table := range w.tablesOfSessions() {
		switch size := w.sizeOfCopies(table); table {
		case "sessions", "session_archives", "archive_parts":
			rows, all = rows+size, all+size
		case "policy_versions": // which a session has only if it has a policy of its own
		default:
			all += size
		}
	}
	t.Logf("a cold session takes %d bytes, and %d with its row of the ledger", rows/coldCopies, all/coldCopies)
	if rows > coldRowBytes*coldCopies || all > coldAllBytes*coldCopies {
		t.Errorf("want at most %d, and %d", coldRowBytes, coldAllBytes)
	}
}

// tablesOfSessions names the tables that have rows of the only session.
func (w *world) tablesOfSessions() (tables []string) {
	w.Helper()
	names := w.one(`
		SELECT string_agg(c.relname::text, ' ')
		  FROM pg_class c
		  JOIN pg_attribute a ON a.attrelid = c.oid AND (a.attname = 'session_key' OR c.relname = 'sessions' AND a.attname = 'key')
		 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace`)
	for table := range strings.FieldsSeq(names) {
		if table == "sessions" || w.count(table+` WHERE session_key IS NOT NULL`) > 0 {
			tables = append(tables, table)
		}
	}
	return tables
}

// sizeOfCopies copies the rows of a table for more sessions, and returns how many bytes it has then, packed.
func (w *world) sizeOfCopies(table string) int {
	w.Helper()
	columns := w.one(`
		SELECT string_agg(quote_ident(attname), ',' ORDER BY attnum)
		  FROM pg_attribute
		 WHERE attrelid = '` + table + `'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`)
	values := "," + columns + ","
	key := `('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
	values = strings.Replace(values, ",session_key,", ","+key+",", 1)
	if table == "sessions" {
		values = strings.Replace(values, ",key,id,", ","+key+",md5(n::text),", 1)
	}
	w.asOwner(fmt.Sprintf(`SET session_replication_role = replica;
		INSERT INTO %[1]s (%[2]s) SELECT %[3]s FROM %[1]s, generate_series(1, %[4]d) n`, table, columns, strings.Trim(values, ","), coldCopies))
	w.asOwner(`VACUUM FULL ` + table)
	size, err := strconv.Atoi(w.one(`SELECT pg_total_relation_size('` + table + `')::text`))
	if err != nil {
		w.Fatal(err)
	}
	w.Logf("%s: %d", table, size/coldCopies)
	return size
}
