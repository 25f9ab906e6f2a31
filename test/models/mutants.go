package main

import "github.com/varve-dev/varve/test/harness"

// mutants are the defects that prove the checks.
var mutants = []harness.Mutant{
	{Name: "no-budget", Finds: "budget", Edits: []harness.Edit{harness.Replace(
		"internal/modelcall/calls.go",
		"($8 = 0 OR s.calls + excluded.calls <= $8)", "($8 = 0 OR s.calls + excluded.calls <= $8 OR true)")}},
	{Name: "nothing-is-kept", Finds: "paid twice", Edits: []harness.Edit{harness.Replace(
		"internal/modelcall/calls.go",
		"\tcall, used := lease.Call, answer.Spent\n",
		"\tcall, used := lease.Call, answer.Spent\n\tif used.Calls > 0 {\n"+
			"\t\treturn c.End(ctx, lease, used)\n\t}\n")}},
	{Name: "open-transaction", Finds: "transaction", Edits: []harness.Edit{harness.Replace(
		"internal/modelcall/calls.go",
		"\tvar pg *pgconn.PgError\n\tif errors.As(err, &pg) && pg.Code == \"23503\"",
		"\tgo func() {\n\t\tif tx, err := c.Pool().Begin(context.WithoutCancel(ctx)); err == nil {\n"+
			"\t\t\t_, _ = tx.Exec(context.WithoutCancel(ctx), `SELECT 1`)\n\t\t\ttime.Sleep(5 * time.Second)\n"+
			"\t\t\t_ = tx.Rollback(context.WithoutCancel(ctx))\n\t\t}\n\t}()\n"+
			"\tvar pg *pgconn.PgError\n\tif errors.As(err, &pg) && pg.Code == \"23503\"")}},
	{Name: "breaker-stays-open", Finds: "breaker", Edits: []harness.Edit{harness.Replace(
		"internal/llm/breaker.go",
		"Timeout:      made.resting,", "Timeout:      24 * time.Hour,")}},
	{Name: "failures-are-forgotten", Finds: "due", Edits: []harness.Edit{harness.Replace(
		"internal/jobs/summarise.go",
		"return gone(w.Store.TakeFailure(ctx, id, brief(err.Error()), again, compacts, job.ID))",
		"_, _ = again, compacts\n\treturn nil")}},
	{Name: "compactions-wait", Finds: "starved", Edits: []harness.Edit{harness.Replace(
		"internal/compactor/answers.go",
		"\tif !w.ask {\n", "\tif w.caller == nil {\n")}},
}
