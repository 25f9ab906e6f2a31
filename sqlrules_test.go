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

// sqlSchema is what the rule that the tenant comes first knows about the tables.
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

// TestStatementsWithoutTheTenantAreFound has statements that break the rule, and such that look like it and do not.
func TestStatementsWithoutTheTenantAreFound(t *testing.T) {
	t.Parallel()
	schema := &sqlSchema{
		ofTenants: map[string]bool{"sessions": true, "messages": true, "runs": true, "due_sessions": true},
		ofWorkers: map[string]bool{"due_sessions": true},
	}
	for _, test := range []struct {
		sql  string
		want []string
	}{
		{`SELECT * FROM sessions WHERE id = $1 AND tenant_id = $2`,
			[]string{"select sessions: WHERE begins with id = $1 and"}},
		{`SELECT count(*) FROM sessions`, []string{"select sessions: WHERE begins with nothing"}},
		{`SELECT * FROM public.sessions s WHERE s.tenant_id = $1 AND s.id = $2`, nil},
		{`SELECT * FROM sessions WHERE (tenant_id, key) > ($1, $2)`, nil},
		{`SELECT * FROM sessions WHERE tenant_id IS NOT NULL`,
			[]string{"select sessions: WHERE begins with tenant_id is not null"}},
		{`SELECT * FROM sessions s JOIN messages m ON m.session_key = s.key WHERE s.tenant_id = $1`,
			[]string{"select messages: ON begins with m . session_key ="}},
		{`SELECT * FROM sessions s LEFT JOIN messages m ON m.tenant_id = $1 AND m.session_key = s.key
			WHERE s.tenant_id = $1`, nil},
		{`SELECT * FROM sessions s JOIN messages m USING (tenant_id, session_key) WHERE s.tenant_id = $1`, nil},
		{`SELECT * FROM sessions s, messages m WHERE s.tenant_id = $1 AND m.session_key = s.key`,
			[]string{"select messages: WHERE does not compare its tenant"}},
		{`SELECT EXISTS (SELECT FROM runs r WHERE r.state = 'x' -- AND tenant_id
			)`, []string{"select runs: WHERE begins with r . state ="}},
		{`SELECT * FROM due_sessions ORDER BY since FOR UPDATE SKIP LOCKED`, nil},
		{`SELECT extract(epoch FROM created_at), a IS DISTINCT FROM b FROM unnest($1::int[]) x`, nil},
		{`WITH a AS (SELECT 1), b AS (UPDATE sessions SET model = 'sessions' WHERE key = $1 RETURNING key)
			DELETE FROM messages WHERE tenant_id = $2`, []string{"update sessions: WHERE begins with key = $1"}},
		{`UPDATE sessions s SET model = r.x FROM runs r WHERE s.tenant_id = $1 AND r.id = $2`,
			[]string{"update runs: WHERE does not compare its tenant"}},
		{`DELETE FROM messages m USING sessions s WHERE m.tenant_id = $1 AND s.tenant_id = $1`, nil},
		{`INSERT INTO runs (id, tenant_id) VALUES ($1, $2)`, []string{"insert runs: its first column is id"}},
		{`INSERT INTO runs (tenant_id, id) SELECT tenant_id, key FROM sessions WHERE tenant_id = $1
			ON CONFLICT (tenant_id, id) DO UPDATE SET state = 'x' WHERE runs.state = 'y'`, nil},
		{`SELECT * FROM {} t WHERE t.x = 1`, []string{"select {}: WHERE begins with t . x ="}},
	} {
		if diff := cmp.Diff(test.want, schema.tenantFirst(sqlNodes(test.sql))); diff != "" {
			t.Errorf("%s\n%s", test.sql, diff)
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
