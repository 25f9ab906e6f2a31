package postgres_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

const planPage = session.MaxPage + 1

// list reads one page of a list: the first one, one in the middle, or one near the end.
type list struct {
	name                string
	first, middle, last func(ctx context.Context) (rows int, err error)
	rows                int // that a page has at least
}

// page reads a page of a list and counts its rows.
type page[T any] func(ctx context.Context, after session.Page) ([]T, error)

// byTime returns a list by time, newest first, whose last page begins before the end of January 1 of 2026.
func byTime[T any](name string, read page[T]) list {
	at := func(day, hour int) session.Page {
		return session.Page{Time: time.Date(2026, 1, day, hour, 0, 0, 0, time.UTC), ID: uuid.Max}
	}
	return listOf(name, read, session.Page{}, at(6, 18), at(1, 6))
}

// listOf returns a list by the places behind which its first, middle and last page begin.
func listOf[T any](name string, read page[T], first, middle, last session.Page) list {
	counted := func(after session.Page) func(ctx context.Context) (int, error) {
		after.Limit = planPage
		return func(ctx context.Context) (int, error) {
			found, err := read(ctx, after)
			return len(found), err
		}
	}
	return list{name, counted(first), counted(middle), counted(last), leastRows}
}

// places are those behind which the first, middle and last page of a list begin whose place is a number.
type places struct{ first, middle, last int64 }

// byNumber returns a list whose place is a number.
func byNumber[T any](name string, at places, read func(ctx context.Context, after int64) ([]T, error)) list {
	counted := func(after int64) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			found, err := read(ctx, after)
			return len(found), err
		}
	}
	return list{name, counted(at.first), counted(at.middle), counted(at.last), leastRows}
}

// leastRows is what the page of a list has at least, or a test of it tests nothing.
const leastRows = 20

// lookup returns what finds one row or none.
func lookup[T any](name string, read func(ctx context.Context) (T, error)) list {
	found := func(ctx context.Context) (int, error) {
		_, err := read(ctx)
		return 1, err
	}
	return list{name, found, found, found, 1}
}

// whole returns a list that has no pages.
func whole[T any](name string, read func(ctx context.Context) ([]T, error)) list {
	return byNumber(name, places{}, func(ctx context.Context, _ int64) ([]T, error) { return read(ctx) })
}

// idOf returns the id that testdata/plans.sql gives a row.
func (p *planned) idOf(t *testing.T, name string) (id uuid.UUID) {
	t.Helper()
	if err := p.Pool().QueryRow(t.Context(), `SELECT md5($1)::uuid`, name).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// lists returns every list that a route or a command answers with.
func (p *planned) lists(t *testing.T) []list {
	at := session.Address{Tenant: largeTenant, ID: "long"}
	return slices.Concat(p.listsByTime(at), p.listsByID(t), p.versionLists(at), p.logLists(t, at), p.resultLists(at),
		p.lookups(t, at))
}

func (p *planned) listsByTime(at session.Address) []list {
	day := func(day, hour int) session.Page {
		return session.Page{Time: time.Date(2026, 1, day, hour, 0, 0, 0, time.UTC), ID: uuid.Max}
	}
	return []list{
		byTime("sessions", func(ctx context.Context, after session.Page) ([]session.Session, error) {
			return p.Sessions(ctx, largeTenant, after)
		}),
		listOf("exported sessions", func(ctx context.Context, after session.Page) ([]session.Exported, error) {
			return p.ExportSessions(ctx, largeTenant, session.Search{}, after)
		}, session.Page{}, day(6, 18), day(12, 12)),
		byTime("sessions by their last append", func(ctx context.Context, after session.Page) ([]session.Listed, error) {
			found, _, err := p.FindSessions(ctx, largeTenant, session.Search{ByAppend: true}, after)
			return found, err
		}),
		byTime("sessions with frequent metadata", p.withMetadata(`{"all":"x"}`, false)),
		byTime("sessions with other metadata", p.withMetadata(`{"most":"3"}`, false)),
		byTime("sessions with frequent metadata by their last append", p.withMetadata(`{"all":"x"}`, true)),
		p.rare("sessions with rare metadata", false), p.rare("sessions with rare metadata by their last append", true),
		byTime("runs", func(ctx context.Context, after session.Page) ([]session.Run, error) {
			return p.Runs(ctx, at, after)
		}),
		byTime("failures", func(ctx context.Context, after session.Page) ([]session.Failing, error) {
			return p.Failures(ctx, largeTenant, after)
		}),
		byTime("tokens", func(ctx context.Context, after session.Page) ([]session.Token, error) {
			return p.Tokens(ctx, at, after)
		}),
	}
}

// withMetadata returns the page of the sessions that have some metadata.
func (p *planned) withMetadata(metadata string, byAppend bool) page[session.Listed] {
	search := session.Search{Metadata: []byte(metadata), ByAppend: byAppend}
	return func(ctx context.Context, after session.Page) ([]session.Listed, error) {
		found, _, err := p.FindSessions(ctx, largeTenant, search, after)
		return found, err
	}
}

// rare returns the list of the sessions that have two pairs of metadata, one of which is rare.
func (p *planned) rare(name string, byAppend bool) list {
	read := p.withMetadata(`{"all":"x","user":"7"}`, byAppend)
	return whole(name, func(ctx context.Context) ([]session.Listed, error) {
		return read(ctx, session.Page{Limit: planPage})
	})
}

func (p *planned) listsByID(t *testing.T) []list {
	from := func(id string) session.Page { return session.Page{ID: uuid.MustParse(id)} }
	half, end := "80000000-0000-0000-0000-000000000000", "f8000000-0000-0000-0000-000000000000"
	return []list{
		listOf("keys of the audit", func(ctx context.Context, after session.Page) ([]uuid.UUID, error) {
			return p.AuditKeys(ctx, largeTenant, after.ID, planPage)
		}, session.Page{}, from(half), from(end)),
		whole("findings", func(ctx context.Context) ([]verify.Finding, error) {
			return (&verify.Verifier{Store: p.Store}).Findings(ctx, largeTenant, planPage)
		}),
		whole("keys", func(ctx context.Context) ([]session.APIKey, error) {
			return p.Keys(ctx, largeTenant, session.Page{Limit: planPage})
		}),
		whole("tenants of the round", func(ctx context.Context) ([]uuid.UUID, error) {
			return p.NextTenants(ctx, planPage)
		}),
	}
}

// lookups returns the reads of one thing that could cost what all of them do.
func (p *planned) lookups(t *testing.T, at session.Address) []list {
	return []list{
		lookup("an unknown item", func(ctx context.Context) ([]session.Message, error) {
			return p.WithItemID(ctx, at, "rs_unknown")
		}),
		lookup("a failure", func(ctx context.Context) (session.Failing, error) {
			return p.Failing(ctx, session.Address{Tenant: largeTenant, ID: "s1"})
		}),
		lookup("a session", func(ctx context.Context) (session.Session, error) { return p.Session(ctx, at) }),
		lookup("the nearest results", func(ctx context.Context) ([]string, error) {
			return p.NearestResults(ctx, at, int64(*planRows/4), 5)
		}),
	}
}

func (p *planned) versionLists(at session.Address) []list {
	n := int64(*planRows)
	return []list{
		byNumber("checkpoints", places{0, n / 4, 200}, func(ctx context.Context, before int64) ([]session.CheckpointRecord, error) {
			return p.Checkpoints(ctx, at, int(before), planPage)
		}),
		byNumber("policy versions", places{0, n / 20, 200}, func(ctx context.Context, before int64) ([]session.PolicyRecord, error) {
			return p.PolicyVersions(ctx, largeTenant, before, planPage)
		}),
		byNumber("policy versions of a session", places{0, n / 20, 200}, func(ctx context.Context, before int64) ([]session.PolicyRecord, error) {
			return p.SessionPolicyVersions(ctx, at, before, planPage)
		}),
	}
}

// logLists returns the lists of a session's log.
func (p *planned) logLists(t *testing.T, at session.Address) []list {
	n := int64(*planRows)
	log := func(name string, descending bool, from places) list {
		return byNumber(name, from, func(ctx context.Context, after int64) ([]session.Message, error) {
			_, found, err := p.Messages(ctx, at, postgres.Range{After: after, Descending: descending, Limit: planPage})
			return found, err
		})
	}
	some := byNumber("messages to a seq", places{0, n / 2, n - 200}, func(ctx context.Context, after int64) ([]session.Message, error) {
		_, found, err := p.Messages(ctx, at, postgres.Range{After: after, To: after + 2*leastRows, Limit: planPage})
		return found, err
	})
	return []list{
		log("messages", false, places{0, n / 2, n - 200}), log("messages, newest first", true, places{0, n / 2, 200}), some,
	}
}

func (p *planned) resultLists(at session.Address) []list {
	n := int64(*planRows)
	results := func(name string, filter persist.Filter, last int64) list {
		return byNumber(name, places{0, last / 2, last}, func(ctx context.Context, after int64) ([]persist.Result, error) {
			return p.Results(ctx, at, filter, persist.Place{Seq: after, Part: math.MaxInt32}, planPage)
		})
	}
	return []list{
		results("results", persist.Filter{}, n/2-200),
		results("results of a range", persist.Filter{FromSeq: 500, ToSeq: n}, n/2-200),
		results("results of a rare tool", persist.Filter{Tool: "rare"}, n/2-5000),
		results("results of a rare category", persist.Filter{Category: "shell"}, n/2-5000),
		results("results of a tool", persist.Filter{Tool: "Read", Category: "file", ToSeq: n}, n/2-200),
	}
}

// pageTime is what the statements of a page may take at the size of test/scale, in milliseconds.
const pageTime = 20

const plansFile = "testdata/plans.golden"

// Every page of every list costs what the page costs, wherever it is in the list and whatever the planner believes of
// the tables: no scan of a tenant's rows, no sort of them, no row that is read for nothing.
func TestEveryPageOfAListCostsThePage(t *testing.T) {
	t.Parallel()
	p := newPlanned(t, *planRows)
	var golden string
	for round, r := range []struct {
		target    int
		noVisible bool // as if VACUUM had never seen a page of which all transactions see all rows
	}{{100, false}, {1, false}, {10, false}, {100, true}} {
		p.analyze(t, r.target)
		if r.noVisible {
			p.exec(t, `UPDATE pg_class SET relallvisible = 0`)
		}
		var plans strings.Builder
		for _, l := range p.lists(t) {
			plans.WriteString(p.checkList(t, l, fmt.Sprintf("%s, statistics %+v", l.name, r)))
		}
		if round == 0 {
			golden = plans.String()
		}
		if diff := cmp.Diff(golden, plans.String()); diff != "" {
			t.Errorf("statistics %+v make other plans:\n%s", r, diff)
		}
	}
	p.compare(t, plansFile, golden)
}

// checkList checks the first, the middle and the last page of a list and returns its plans.
func (p *planned) checkList(t *testing.T, l list, name string) string {
	t.Helper()
	plans, first := p.checkPage(t, name+", first page", l.rows, l.first)
	for at, read := range map[string]func(ctx context.Context) (int, error){"middle": l.middle, "last": l.last} {
		same, later := p.checkPage(t, name+", "+at+" page", l.rows, read)
		if plans != same {
			t.Errorf("%s: the %s page has another plan:\n%s", name, at, same)
		}
		if later > first*3/2+50 {
			t.Errorf("%s: %d pages of the database for the first page, %d for the %s", name, first, later, at)
		}
	}
	return "== " + l.name + "\n" + plans
}

// checkPage checks how a page of a list is read, and returns its plans and what it costs: what a second reading does,
// since the first may read the catalogs, too.
func (p *planned) checkPage(
	t *testing.T, name string, fewest int, read func(ctx context.Context) (int, error),
) (string, int) {
	t.Helper()
	var plans strings.Builder
	cost, took := 0, 0.0
	for second := range 2 {
		var rows int
		ran := p.plansOf(t, func(ctx context.Context) (err error) {
			rows, err = read(ctx)
			return err
		})
		if rows < fewest {
			t.Errorf("%s: %d rows", name, rows)
		}
		for i := range ran {
			cost += second * ran[i].pages()
			took += float64(second) * ran[i].Took
			if second == 0 {
				plans.WriteString(ran[i].short())
				checkPlan(t, name, &ran[i])
			}
		}
	}
	t.Logf("%-58s %6d pages %9.1f ms", name, cost, took)
	if *atScale && took > pageTime {
		t.Errorf("%s: %.1f ms", name, took)
	}
	return plans.String(), cost
}

// checkPlan fails the test if a statement read much more than a page of a list has.
func checkPlan(t *testing.T, name string, e *explained) {
	t.Helper()
	const few = 3 * planPage
	e.Plan.each(func(n *planNode) {
		rows := int(n.Rows * n.Loops)
		switch {
		case n.removed() > few:
			t.Errorf("%s: %s read %d rows for nothing:\n%s", name, n.Type, n.removed(), e.short())
		case rows > 20*planPage:
			t.Errorf("%s: %s %s read %d rows:\n%s", name, n.Type, n.Relation, rows, e.short())
		case n.Type == "Sort" && n.Plans[0].Rows > few:
			t.Errorf("%s: %.0f rows were sorted:\n%s", name, n.Plans[0].Rows, e.short())
		}
	})
}

// compare compares plans with a golden file, which -update writes. Other releases than that which wrote it may have
// other names for nodes.
func (p *planned) compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	var version string
	if err := p.Pool().QueryRow(t.Context(), `SHOW server_version`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" && strings.HasPrefix(version, "15.") {
		t.Errorf("the plans differ from %s (-); if the new ones (+) are right, run go test ./internal/postgres -run "+
			"TestEveryPage -update\n%s", file, diff)
	}
}
