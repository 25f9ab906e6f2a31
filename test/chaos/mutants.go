package main

import "github.com/varve-dev/varve/test/harness"

// mutants are the defects that prove the checks.
var mutants = []harness.Mutant{
	{Name: "no-idempotency-record", Only: "lose answers,cut", Edits: []harness.Edit{
		harness.Replace("internal/postgres/sql/append.sql",
			"'none')::text\n\t  FROM grown g\n", "'none')::text\n\t  FROM grown g\n\t WHERE false\n"),
		harness.Replace("internal/postgres/idempotency.go",
			"\tif id == nil {\n\t\treturn nil\n", "\tif true {\n\t\treturn nil\n"),
	}},
	{Name: "no-lock", Edits: []harness.Edit{
		harness.Replace("internal/postgres/lock.go",
			"lockSQL+condition+` FOR NO KEY UPDATE`", "lockSQL+condition"),
	}},
	{Name: "commit-without-cas", Only: "SIGSTOP worker", Edits: []harness.Edit{
		harness.Replace("internal/postgres/commit.go",
			"if row.checkpoint != o.Base {\n\t\t\treturn session.ErrStale\n\t\t}",
			"o.Base = row.checkpoint"),
	}},
	{Name: "persist-after-commit", Only: "cut worker,kill -9 worker", Edits: []harness.Edit{
		harness.Replace("internal/compactor/run.go",
			"if err := r.persist(ctx, p.window, p.Plan.Results[p.persisted:])",
			"if err := ctx.Err()"),
		harness.Replace("internal/compactor/run.go",
			"\tr.step(\"committed\")\n", "\tr.step(\"committed\")\n"+
				"\ttime.Sleep(200 * time.Millisecond)\n"+
				"\t_ = r.persist(ctx, p.window, p.Plan.Results[p.persisted:])\n"),
		harness.Replace("internal/postgres/commit.go",
			"|| n == len(c.Refs)", "|| n <= len(c.Refs)"),
	}},
	{Name: "no-sweep", Only: "lost jobs", Edits: []harness.Edit{
		harness.Replace("internal/jobs/sweep.go",
			"\tinserted, err := w.Store.Sweep(ctx)\n",
			"\tif true {\n\t\treturn nil\n\t}\n\tinserted, err := w.Store.Sweep(ctx)\n"),
	}},
	{Name: "etag-without-checkpoint", Only: "cut client-api", Edits: []harness.Edit{
		harness.Replace("internal/api/negotiate.go",
			"strconv.AppendInt(b, int64(v.Checkpoint), 10)", "strconv.AppendInt(b, 0, 10)"),
	}},
	{Name: "uncounted-after-a-kill", Only: "kill -9 worker", Edits: []harness.Edit{
		harness.Replace("internal/postgres/due.go",
			"s.countStored(ctx, tenant, uncounted)", "s.countStored(ctx, tenant, uncounted[:0])"),
	}},
	{Name: "fork-without-its-last-message", Only: "kill -9 api", Edits: []harness.Edit{
		harness.Replace("internal/postgres/sql/fork_session.sql",
			"m.session_key = @session AND m.seq <= @seq\n", "m.session_key = @session AND m.seq < @seq\n"),
	}},
	{Name: "failed-deliveries-count", Only: "kill -9 api", Edits: []harness.Edit{
		harness.Replace("internal/webhook/send.go", "status < 300:", "status < 600:"),
	}},
}
