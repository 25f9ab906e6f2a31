package main

import (
	"context"
	"os"
	"strings"

	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
	"github.com/varve-dev/varve/internal/replay/planted"
)

// extractRate is what writing a summary without a model must reach on recorded conversations, in megabytes
// for each second of processor time: what else runs on the machine must not count.
const extractRate = ">= 20"

// steadyRate is the rate of ten times as many messages beside that of the others.
const steadyRate = ">= 0.7"

// measureSummaries measures how fast summaries are written without a model, and what they and those of other writers
// keep of planted facts.
func measureSummaries(ctx context.Context, b *bench) error {
	found, err := runBenchmarks(
		ctx, "internal/compact/summary", "-bench=^BenchmarkExtract", "-benchtime="+b.round.String(),
	)
	if err != nil {
		return err
	}
	b.add(extractRows(found)...)
	sessions, _, err := folder.Read(ctx, os.Getenv("VARVE_DATA"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return b.plantFacts(ctx, sessions)
}

// extractRows returns the rows of the benchmarks of Extract. The rate of long sessions stands beside that of sessions
// of a tenth of their length: linear time keeps it.
func extractRows(found []measured) (rows []row) {
	before := 0.0
	for _, f := range found {
		name, of, _ := strings.Cut(f.Name, "/")
		r := row{Unit: "MB/s", Value: f.Values["MB/cpu-s"]}
		if name == "ExtractOfRecorded" {
			r.Name, r.Goal = "summaries without a model, "+of+" recorded conversations", extractRate
		} else {
			r.Name = "summaries without a model, " + of + " turns"
			if before > 0 {
				r.Goal = steadyRate
				r = r.beside(before)
			}
			before = r.Value
		}
		rows = append(rows, r)
	}
	return rows
}

// plantFacts measures what summaries keep of both halves of the sentences.
func (b *bench) plantFacts(ctx context.Context, sessions []*replay.Session) error {
	options := planted.Standard
	for _, options.HeldOut = range []bool{true, false} {
		rows, err := planted.Measure(ctx, sessions, planted.Writers(), options)
		if err != nil {
			return err
		}
		b.summaries = append(b.summaries, rows)
	}
	return nil
}

// summaryTables returns the tables of what summaries keep, "" if that was not measured.
func summaryTables(halves [][]planted.Row) string {
	var text strings.Builder
	titles := []string{"Facts that were held out", "Facts that Extract was improved with"}
	for i, rows := range halves {
		head, lines := planted.Table(rows)
		text.WriteString("### " + titles[i] + "\n\n" + table(head, lines) + "\n")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// publishSummaries writes the table of what summaries keep of the sentences that were held out.
func (b *bench) publishSummaries() error {
	if b.isPart || len(b.summaries) == 0 {
		return nil
	}
	return writeDocs(docsFile, map[string]string{"summaries": summaryTables(b.summaries[:1])})
}
