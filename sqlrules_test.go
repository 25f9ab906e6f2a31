package varve

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The rules that keep Varve's SQL from adding to what a distributed PostgreSQL refuses (docs/citus.md). A rule returns
// what it finds in one statement, each as a short text.

// sqlRule is a rule for statements.
type sqlRule struct {
	name  string
	check func(s *sqlSchema, statement []sqlNode) []string
}

var sqlRules = []sqlRule{
	{"the tenant is first", (*sqlSchema).tenantFirst},
	{"no clock is in CASE or COALESCE", (*sqlSchema).noClock},
	{"no clock is in ON CONFLICT", (*sqlSchema).noClockInConflict},
	{"River's tables are not read with a tenant's", (*sqlSchema).noJobs},
}

// sqlSchema is what the rules know about the tables.
type sqlSchema struct {
	ofTenants map[string]bool // the tables with a tenant_id
	ofWorkers map[string]bool // those of them that workers read for all tenants
}

// tenantFirst finds the tables of tenants that a block reads or writes without beginning its condition with the tenant.
func (s *sqlSchema) tenantFirst(statement []sqlNode) (found []string) {
	for _, b := range sqlBlocks(statement) {
		for i, t := range b.tables {
			unknown := t.name == sqlHole && i == 0 // behind another table it may be anything
			if s.ofWorkers[t.name] || !s.ofTenants[t.name] && !unknown {
				continue
			}
			if why := s.untied(b, i); why != "" {
				found = append(found, fmt.Sprintf("%s %s: %s", b.verb, t.name, why))
			}
		}
	}
	return found
}

// untied returns why a table of a block is not held to a tenant, "" if it is.
func (s *sqlSchema) untied(b *sqlBlock, i int) string {
	t := b.tables[i]
	switch {
	case b.verb == "insert" && i == 0:
		if len(b.columns) > 0 && b.columns[0].text != "tenant_id" {
			return "its first column is " + b.columns[0].text
		}
	case len(t.on) > 0:
		if !beginsWithTenant(t.on) {
			return "ON begins with " + beginning(t.on)
		}
	case t.joined:
		return "it is joined without a condition"
	case !beginsWithTenant(b.where):
		return "WHERE begins with " + beginning(b.where)
	case i > 0 && !mentionsTenant(b.where, t):
		return "WHERE does not compare its tenant"
	}
	return ""
}

// beginsWithTenant reports whether a condition begins with a comparison of a tenant_id, alone or in front of a row.
func beginsWithTenant(nodes []sqlNode) bool {
	if len(nodes) > 0 && nodes[0].group != nil {
		return beginsWithTenant(nodes[0].group)
	}
	if len(nodes) > 2 && nodes[1].text == "." {
		nodes = nodes[2:]
	}
	return len(nodes) > 0 && nodes[0].text == "tenant_id" &&
		(len(nodes) == 1 || slices.Contains([]string{"=", ",", "in", ">"}, nodes[1].text))
}

// mentionsTenant reports whether a condition compares the tenant of a table.
func mentionsTenant(nodes []sqlNode, t sqlTable) bool {
	name := t.alias
	if name == "" {
		name = t.name
	}
	for i := range nodes {
		if i >= 2 && nodes[i].text == "tenant_id" && nodes[i-1].text == "." && nodes[i-2].text == name {
			return true
		}
	}
	return false
}

// beginning returns the first words of a condition.
func beginning(nodes []sqlNode) string {
	var words []string
	sqlWords(nodes[:min(len(nodes), 4)], func(word string) { words = append(words, word) })
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words[:min(len(words), 4)], " ")
}

// sqlClocks are functions that say what time it is.
var sqlClocks = []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "current_timestamp",
	"localtimestamp", "current_date", "timeofday"}

// noClock finds the clocks between CASE and END, and in what COALESCE chooses from, where rows are changed: what an UPDATE
// sets and compares, and what ON CONFLICT DO UPDATE does. A SELECT may have them.
func (s *sqlSchema) noClock(statement []sqlNode) []string {
	if !s.anyOfTenants(statement) {
		return nil
	}
	w := clockWalk{}
	w.walk(statement, false, "", "")
	return w.found
}

// anyOfTenants reports whether a statement names a table that is distributed, or tenants, which is on every node.
func (s *sqlSchema) anyOfTenants(statement []sqlNode) bool {
	for _, b := range sqlBlocks(statement) {
		for _, t := range b.tables {
			if s.ofTenants[t.name] && !s.ofWorkers[t.name] || t.name == "tenants" || t.name == sqlHole {
				return true
			}
		}
	}
	return false
}

type clockWalk struct{ found []string }

// walk goes through one level of parentheses. around is what encloses it, "case" or "coalesce", and column what it is
// assigned to.
func (w *clockWalk) walk(nodes []sqlNode, changes bool, around, column string) {
	cases := 0
	for i, n := range nodes {
		inside := around
		if cases > 0 {
			inside = "case"
		}
		switch before := nodes[max(i, 1)-1].text; {
		case n.text == "case":
			cases++
		case n.text == "end" && cases > 0:
			cases--
		case n.text == "update" && before != "for" && before != "key", n.text == "delete":
			changes = true
		case n.text == "=" && cases == 0 && around == "" && i > 0:
			column = before
		case slices.Contains(sqlClocks, n.text) && inside != "" && changes:
			w.found = append(w.found, fmt.Sprintf("%s in %s: %s", n.text, inside, column))
		case n.group != nil && i > 0 && before == "coalesce":
			inside = "coalesce"
		}
		w.walk(n.group, changes, inside, column)
	}
}

// noClockInConflict finds the clocks of ON CONFLICT: in what it sets, and in its condition. The time of the row that could
// not be inserted is in excluded.
func (s *sqlSchema) noClockInConflict(statement []sqlNode) []string {
	if !s.anyOfTenants(statement) {
		return nil
	}
	return clocksOfConflicts(statement, false)
}

func clocksOfConflicts(nodes []sqlNode, inside bool) (found []string) {
	for _, n := range nodes {
		switch {
		case n.text == "conflict":
			inside = true
		case n.text == "returning":
			inside = false
		case inside && slices.Contains(sqlClocks, n.text):
			found = append(found, n.text)
		}
		found = append(found, clocksOfConflicts(n.group, inside)...)
	}
	return found
}

// noJobs finds a statement that has tables of River and of tenants.
func (s *sqlSchema) noJobs(statement []sqlNode) []string {
	var jobs, tenants []string
	for _, b := range sqlBlocks(statement) {
		for _, t := range b.tables {
			if strings.HasPrefix(t.name, "river_") {
				jobs = append(jobs, t.name)
			} else if s.ofTenants[t.name] && !s.ofWorkers[t.name] {
				tenants = append(tenants, t.name)
			}
		}
	}
	if len(jobs) > 0 && len(tenants) > 0 {
		return []string{jobs[0] + " with " + tenants[0]}
	}
	return nil
}

// migrationOffences finds what Citus refuses in a statement of a migration: an ALTER TABLE with several parts one of which
// is a constraint, a column with a constraint, and a constraint without a name.
func migrationOffences(statement []sqlNode) (found []string) {
	if len(statement) < 3 || statement[0].text != "alter" || statement[1].text != "table" {
		return nil
	}
	parts := [][]sqlNode{nil}
	for _, n := range statement[2:] {
		if n.text == "," {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], n)
	}
	for _, part := range parts {
		words := []string{}
		for _, n := range part {
			words = append(words, n.text)
		}
		text := " " + strings.Join(words, " ") + " "
		column := strings.Contains(text, " add column ")
		switch {
		case column && (strings.Contains(text, " check ") || strings.Contains(text, " references ") ||
			strings.Contains(text, " unique ") || strings.Contains(text, " primary key ")):
			found = append(found, "a column is added with a constraint")
		case strings.Contains(text, " add check ") || strings.Contains(text, " add unique ") ||
			strings.Contains(text, " add foreign ") || strings.Contains(text, " add primary "):
			found = append(found, "a constraint is added without a name")
		case strings.Contains(text, " add constraint ") && len(parts) > 1:
			found = append(found, "a constraint is added together with something else")
		}
	}
	return found
}

// TestTheRulesOfSQLFindWhatBreaksThem has statements that break each rule, and such that look like it and do not.
func TestTheRulesOfSQLFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	schema := &sqlSchema{
		ofTenants: map[string]bool{"sessions": true, "messages": true, "runs": true, "due_sessions": true},
		ofWorkers: map[string]bool{"due_sessions": true},
	}
	for _, test := range []struct {
		rule, sql string
		want      []string
	}{
		{"the tenant is first", `SELECT * FROM sessions WHERE id = $1 AND tenant_id = $2`,
			[]string{"select sessions: WHERE begins with id = $1 and"}},
		{"the tenant is first", `SELECT count(*) FROM sessions`, []string{"select sessions: WHERE begins with nothing"}},
		{"the tenant is first", `SELECT * FROM public.sessions s WHERE s.tenant_id = $1 AND s.id = $2`, nil},
		{"the tenant is first", `SELECT * FROM sessions WHERE (tenant_id, key) > ($1, $2)`, nil},
		{"the tenant is first", `SELECT * FROM sessions WHERE tenant_id IS NOT NULL`,
			[]string{"select sessions: WHERE begins with tenant_id is not null"}},
		{"the tenant is first", `SELECT * FROM sessions s JOIN messages m ON m.session_key = s.key WHERE s.tenant_id = $1`,
			[]string{"select messages: ON begins with m . session_key ="}},
		{"the tenant is first", `SELECT * FROM sessions s LEFT JOIN messages m ON m.tenant_id = $1 AND m.session_key = s.key
			WHERE s.tenant_id = $1`, nil},
		{"the tenant is first", `SELECT * FROM sessions s JOIN messages m USING (tenant_id, session_key) WHERE s.tenant_id = $1`, nil},
		{"the tenant is first", `SELECT * FROM sessions s, messages m WHERE s.tenant_id = $1 AND m.session_key = s.key`,
			[]string{"select messages: WHERE does not compare its tenant"}},
		{"the tenant is first", `SELECT EXISTS (SELECT FROM runs r WHERE r.state = 'x' -- AND tenant_id
			)`, []string{"select runs: WHERE begins with r . state ="}},
		{"the tenant is first", `SELECT * FROM due_sessions ORDER BY since FOR UPDATE SKIP LOCKED`, nil},
		{"the tenant is first", `SELECT extract(epoch FROM created_at), a IS DISTINCT FROM b FROM unnest($1::int[]) x`, nil},
		{"the tenant is first", `WITH a AS (SELECT 1), b AS (UPDATE sessions SET model = 'sessions' WHERE key = $1 RETURNING key)
			DELETE FROM messages WHERE tenant_id = $2`, []string{"update sessions: WHERE begins with key = $1"}},
		{"the tenant is first", `UPDATE sessions s SET model = r.x FROM runs r WHERE s.tenant_id = $1 AND r.id = $2`,
			[]string{"update runs: WHERE does not compare its tenant"}},
		{"the tenant is first", `DELETE FROM messages m USING sessions s WHERE m.tenant_id = $1 AND s.tenant_id = $1`, nil},
		{"the tenant is first", `INSERT INTO runs (id, tenant_id) VALUES ($1, $2)`, []string{"insert runs: its first column is id"}},
		{"the tenant is first", `INSERT INTO runs (tenant_id, id) SELECT tenant_id, key FROM sessions WHERE tenant_id = $1
			ON CONFLICT (tenant_id, id) DO UPDATE SET state = 'x' WHERE runs.state = 'y'`, nil},
		{"the tenant is first", `SELECT * FROM {} t WHERE t.x = 1`, []string{"select {}: WHERE begins with t . x ="}},

		{"no clock is in CASE or COALESCE", `UPDATE runs SET a = 1, finished_at = CASE WHEN $1 THEN now() END WHERE tenant_id = $2`,
			[]string{"now in case: finished_at"}},
		{"no clock is in CASE or COALESCE", `UPDATE runs SET started_at = coalesce(started_at, (clock_timestamp()))`,
			[]string{"clock_timestamp in coalesce: started_at"}},
		{"no clock is in CASE or COALESCE", `INSERT INTO runs (tenant_id) VALUES ($1) ON CONFLICT (tenant_id) DO UPDATE
			SET since = CASE WHEN true THEN greatest(now(), $2) ELSE runs.since END`, []string{"now in case: since"}},
		{"no clock is in CASE or COALESCE", `UPDATE runs SET a = CASE WHEN $1 THEN 1 END, finished_at = now() WHERE b < now()`, nil},
		{"no clock is in CASE or COALESCE", `SELECT coalesce(started_at, now()) FROM runs WHERE tenant_id = $1 FOR UPDATE`, nil},
		{"no clock is in CASE or COALESCE", `UPDATE river_job SET finalized_at = CASE WHEN $1 THEN now() END`, nil},

		{"no clock is in ON CONFLICT", `INSERT INTO runs AS r (tenant_id, since) VALUES ($1, now())
			ON CONFLICT (tenant_id) DO UPDATE SET since = greatest(r.since, now()) RETURNING now() - since`, []string{"now"}},
		{"no clock is in ON CONFLICT", `INSERT INTO runs AS r (tenant_id) VALUES ($1)
			ON CONFLICT (tenant_id) DO UPDATE SET a = 1 WHERE r.since < clock_timestamp()`, []string{"clock_timestamp"}},
		{"no clock is in ON CONFLICT", `WITH a AS (INSERT INTO runs (tenant_id, since) VALUES ($1, now())
			ON CONFLICT (tenant_id) DO UPDATE SET since = excluded.since) UPDATE runs SET since = now()`, nil},
		{"no clock is in ON CONFLICT", `INSERT INTO workers (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET at = now()`, nil},

		{"River's tables are not read with a tenant's", `SELECT key FROM sessions s WHERE s.tenant_id = $1
			AND NOT EXISTS (SELECT FROM river_job j WHERE j.args ->> 'session' = s.key::text)`, []string{"river_job with sessions"}},
		{"River's tables are not read with a tenant's", `WITH done AS (DELETE FROM river_job WHERE id = $1 RETURNING id)
			UPDATE runs SET state = 'done' WHERE tenant_id = $2`, []string{"river_job with runs"}},
		{"River's tables are not read with a tenant's", `SELECT * FROM due_sessions d JOIN river_job j ON j.id = d.job_id`, nil},
	} {
		i := slices.IndexFunc(sqlRules, func(r sqlRule) bool { return r.name == test.rule })
		if diff := cmp.Diff(test.want, sqlRules[i].check(schema, sqlNodes(test.sql))); diff != "" {
			t.Errorf("%s: %s\n%s", test.rule, test.sql, diff)
		}
	}
}

func TestTheRuleForMigrationsFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string][]string{
		`ALTER TABLE sessions ADD COLUMN a int CHECK (a > 0)`:                           {"a column is added with a constraint"},
		`ALTER TABLE sessions ADD COLUMN a uuid REFERENCES tenants (id)`:                {"a column is added with a constraint"},
		`ALTER TABLE sessions ADD CHECK (a > 0)`:                                        {"a constraint is added without a name"},
		`ALTER TABLE sessions ADD COLUMN a int, ADD CONSTRAINT b CHECK (a > 0)`:         {"a constraint is added together with something else"},
		`ALTER TABLE sessions ADD COLUMN a int NOT NULL DEFAULT 0, ADD COLUMN b text`:   nil,
		`ALTER TABLE sessions ADD CONSTRAINT a CHECK (a > 0)`:                           nil,
		`CREATE TABLE x (tenant_id uuid, n int CHECK (n > 0), PRIMARY KEY (tenant_id))`: nil,
	} {
		if diff := cmp.Diff(want, migrationOffences(sqlNodes(sql))); diff != "" {
			t.Errorf("%s\n%s", sql, diff)
		}
	}
}

// TestSQLIsReadFromGo puts together what code puts together: names and functions of two packages, and files.
func TestSQLIsReadFromGo(t *testing.T) {
	t.Parallel()
	r := sqlReader{names: map[string]ast.Expr{}, functions: map[string]*ast.FuncDecl{}}
	var last sourceFile
	for _, text := range []string{
		"package queue\nconst states = `'a'`\nfunc Live(job string) string { return `j.id = ` + job + ` AND state IN (` + states + `)` }",
		"package store\nvar columns = `id, ` + more()\nfunc more() string { println(); return `x` }\n" +
			"var list = `SELECT ` + columns + ` FROM river_job j WHERE ` + queue.Live(`s.job`)",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		last = sourceFile{ast: parsed}
		r.define(last)
	}
	got := r.literals(last)
	want := `SELECT id,  {}  FROM river_job j WHERE j.id = s.job AND state IN ('a')`
	if !slices.Contains(got, want) {
		t.Errorf("%q is not among %q", want, got)
	}
}
