package postgres_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const planPage = session.MaxPage + 1

// list reads one page of a list: the first one, or one near the end.
type list struct {
	name        string
	first, last func(ctx context.Context) (rows int, err error)
}

// page reads a page of a list and counts its rows.
type page[T any] func(ctx context.Context, after session.Page) ([]T, error)

// byTime returns a list by time, newest first, whose last page begins before the end of January 1 of 2026.
func byTime[T any](name string, read page[T]) list {
	return listOf(name, read, session.Page{}, session.Page{Time: time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC), ID: uuid.Max})
}

func listOf[T any](name string, read page[T], first, last session.Page) list {
	counted := func(after session.Page) func(ctx context.Context) (int, error) {
		after.Limit = planPage
		return func(ctx context.Context) (int, error) {
			found, err := read(ctx, after)
			return len(found), err
		}
	}
	return list{name, counted(first), counted(last)}
}

// byNumber returns a list whose place is a number.
func byNumber[T any](name string, first, last int64, read func(ctx context.Context, after int64) ([]T, error)) list {
	counted := func(after int64) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			found, err := read(ctx, after)
			return len(found), err
		}
	}
	return list{name, counted(first), counted(last)}
}

// idOf returns the id that testdata/plans.sql gives a row.
func (p *planned) idOf(t *testing.T, name string) (id uuid.UUID) {
	t.Helper()
	if err := p.Pool().QueryRow(t.Context(), `SELECT md5($1)::uuid`, name).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (p *planned) lists(t *testing.T) []list {
	at := session.Address{Tenant: largeTenant, ID: "long"}
	n := int64(*planRows)
	end := session.Page{ID: uuid.MustParse("f8000000-0000-0000-0000-000000000000")}
	campaign, imported := p.idOf(t, "recompaction1"), p.idOf(t, "import1")
	return append([]list{
		byTime("sessions", func(ctx context.Context, after session.Page) ([]session.Session, error) {
			return p.Sessions(ctx, largeTenant, after)
		}),
		listOf("exported sessions", func(ctx context.Context, after session.Page) ([]session.Exported, error) {
			return p.ExportSessions(ctx, largeTenant, after)
		}, session.Page{}, session.Page{Time: time.Date(2026, 1, 12, 12, 0, 0, 0, time.UTC), ID: uuid.Max}),
		byTime("runs", func(ctx context.Context, after session.Page) ([]session.Run, error) {
			return p.Runs(ctx, at, after)
		}),
		byTime("tokens", func(ctx context.Context, after session.Page) ([]session.Token, error) {
			return p.Tokens(ctx, at, after)
		}),
		byTime("recompactions", func(ctx context.Context, after session.Page) ([]session.Recompaction, error) {
			return p.Recompactions(ctx, largeTenant, after)
		}),
		listOf("sessions of a recompaction", func(ctx context.Context, after session.Page) ([]session.RecompactionSession, error) {
			return p.RecompactionSessions(ctx, largeTenant, campaign, after)
		}, session.Page{}, end),
		byTime("imports", func(ctx context.Context, after session.Page) ([]session.Import, error) {
			return p.Imports(ctx, largeTenant, after)
		}),
		listOf("replays", func(ctx context.Context, after session.Page) ([]session.Replay, error) {
			return p.Replays(ctx, largeTenant, after)
		}, session.Page{Time: time.Date(2026, 12, 30, 23, 59, 0, 0, time.UTC)},
			session.Page{Time: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC).Add(-time.Duration(n/10-60) * time.Minute)}),
		byNumber("sessions of a replay", 0, 800, func(ctx context.Context, after int64) ([]session.ReplaySession, error) {
			return p.ReplaySessions(ctx, largeTenant, p.idOf(t, "replay1"), after, planPage)
		}),
		byNumber("checkpoints", 0, 200, func(ctx context.Context, before int64) ([]session.CheckpointRecord, error) {
			return p.Checkpoints(ctx, at, int(before), planPage)
		}),
		byNumber("policy versions", 0, 200, func(ctx context.Context, before int64) ([]session.PolicyRecord, error) {
			return p.PolicyVersions(ctx, largeTenant, before, planPage)
		}),
		byNumber("policy versions of a session", 0, 200, func(ctx context.Context, before int64) ([]session.PolicyRecord, error) {
			return p.SessionPolicyVersions(ctx, at, before, planPage)
		}),
		byNumber("keys of the audit", 0, 0, func(ctx context.Context, _ int64) ([]uuid.UUID, error) {
			return p.AuditKeys(ctx, largeTenant, end.ID, planPage)
		}),
		byNumber("findings", 0, 0, func(ctx context.Context, _ int64) ([][]byte, error) {
			found, err := p.Findings(ctx, largeTenant, planPage)
			return make([][]byte, len(found)), err
		}),
	}, p.numberedLists(at, imported, n)...)
}

// numberedLists returns the lists of a session's log and results, and of an import's lines.
func (p *planned) numberedLists(at session.Address, imported uuid.UUID, n int64) []list {
	log := func(name string, descending bool, first, last int64) list {
		return byNumber(name, first, last, func(ctx context.Context, after int64) ([]session.Message, error) {
			_, found, err := p.Messages(ctx, at, postgres.Range{After: after, Descending: descending, Limit: planPage})
			return found, err
		})
	}
	lines := func(name string, outcome session.LineOutcome, last int64) list {
		return byNumber(name, 1, last, func(ctx context.Context, from int64) ([]session.ImportedLine, error) {
			return p.ImportLines(ctx, largeTenant, imported, session.ImportedRange{From: from, Outcome: outcome, Limit: planPage})
		})
	}
	results := func(name string, filter persist.Filter) list {
		return byNumber(name, 0, n/2-200, func(ctx context.Context, after int64) ([]persist.Result, error) {
			return p.Results(ctx, at, filter, persist.Place{Seq: after, Part: math.MaxInt32}, planPage)
		})
	}
	return []list{
		log("messages", false, 0, n-200), log("messages, newest first", true, 0, 200),
		lines("lines of an import", "", n-200), lines("rejected lines of an import", session.LineRejected, n-20_000),
		results("results", persist.Filter{}), results("results of a range", persist.Filter{FromSeq: 500, ToSeq: n}),
	}
}

const plansFile = "testdata/plans.golden"

// Every page of every list costs what the page costs, wherever it is in the list and whatever the planner believes of
// the tables: no scan of a tenant's rows, no sort of them, no row that is read for nothing.
func TestEveryPageOfAListCostsThePage(t *testing.T) {
	t.Parallel()
	p := newPlanned(t, *planRows)
	var golden string
	for round, target := range []int{100, 1, 10} {
		p.analyze(t, target)
		var plans strings.Builder
		for _, l := range p.lists(t) {
			plans.WriteString(p.checkList(t, l, fmt.Sprintf("%s, statistics %d", l.name, target)))
		}
		if round == 0 {
			golden = plans.String()
		} else if diff := cmp.Diff(golden, plans.String()); diff != "" {
			t.Errorf("statistics %d make other plans:\n%s", target, diff)
		}
	}
	p.compare(t, plansFile, golden)
}

// checkList checks the first and the last page of a list and returns its plans.
func (p *planned) checkList(t *testing.T, l list, name string) string {
	t.Helper()
	plans, first := p.checkPage(t, name+", first page", l.first)
	same, last := p.checkPage(t, name+", last page", l.last)
	if plans != same {
		t.Errorf("%s: the last page has another plan:\n%s", name, same)
	}
	if last > first*3/2+50 {
		t.Errorf("%s: %d pages of the database for the first page, %d for the last", name, first, last)
	}
	return "== " + l.name + "\n" + plans
}

// checkPage checks how a page of a list is read, and returns its plans and what it costs: what a second reading does,
// since the first may read the catalogs, too.
func (p *planned) checkPage(t *testing.T, name string, read func(ctx context.Context) (int, error)) (string, int) {
	t.Helper()
	var plans strings.Builder
	cost, took := 0, 0.0
	for second := range 2 {
		var rows int
		ran := p.plansOf(t, func(ctx context.Context) (err error) {
			rows, err = read(ctx)
			return err
		})
		if rows < 20 {
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
	t.Logf("%-55s %6d pages %9.1f ms", name, cost, took)
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
