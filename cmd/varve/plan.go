package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

// writePlan writes a preview: its effect, stage by stage, then at most limit parts, the largest savings first.
func writePlan(out io.Writer, p *protocol.Preview, id string, limit, width int) error {
	for _, sentence := range planSentences(p, id) {
		fmt.Fprintln(out, terminal.Fold(sentence, width))
	}
	if !p.WouldChange {
		return nil
	}
	if err := writeStages(out, p.Stages); err != nil {
		return err
	}
	return writeParts(out, p.Actions, limit, width)
}

func planSentences(p *protocol.Preview, id string) []string {
	r := &p.Report
	source := p.From
	if p.TokensBefore != r.ViewTokensBefore {
		source += fmt.Sprintf(" of %s tokens", terminal.Thousands(p.TokensBefore))
	}
	list := []string{
		fmt.Sprintf("session %s: %s → %s tokens in the view (%s), from the %s, through message %d", id, terminal.Thousands(r.ViewTokensBefore),
			terminal.Thousands(r.ViewTokensBefore-r.TokensSaved), fewer(r.TokensSaved, r.ViewTokensBefore), source, p.Through),
		p.Reason,
	}
	if !p.WouldChange {
		return list
	}
	list = append(list, fmt.Sprintf("%s of %s messages changed; the first %s tokens stay as they are (%.0f %% of the view)",
		terminal.Thousands(int64(r.MessagesCompacted)), terminal.Thousands(r.MessagesTotal), terminal.Thousands(r.KeptPrefix.Tokens),
		100*r.KeptPrefix.Share))
	for _, failed := range r.FailedOpen {
		list = append(list, "done without what failed: "+failed)
	}
	if risk := r.OverflowRisk; risk != nil {
		list = append(list, fmt.Sprintf("still %s tokens too large for the window: %s", terminal.Thousands(risk.OverBy), risk.Recommendation))
	}
	return list
}

func writeStages(out io.Writer, stages []compact.StageReport) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "STAGE\tPARTS\tTOKENS SAVED\t")
	for _, s := range stages {
		if s.Entered {
			fmt.Fprintf(table, "%s\t%s\t%s\t\n", s.Stage, terminal.Thousands(int64(s.Actions)), terminal.Thousands(s.TokensSaved))
		}
	}
	return table.Flush()
}

// writeParts writes the parts in columns, the reason last, each line cut to the width.
func writeParts(out io.Writer, actions []compact.Action, limit, width int) error {
	parts := slices.SortedStableFunc(slices.Values(actions), func(a, b compact.Action) int {
		return cmp.Compare(b.TokensBefore-b.TokensAfter, a.TokensBefore-a.TokensAfter)
	})
	rows := make([][]any, min(limit, len(parts)))
	for i := range rows {
		a := &parts[i]
		tokens := terminal.Thousands(int64(a.TokensBefore)) + " → " + terminal.Thousands(int64(a.TokensAfter))
		rows[i] = []any{partPlace(a), terminal.Cut(orDash(a.Tool), 20), a.Kind, tokens, a.Reason}
	}
	var text strings.Builder
	if err := writeTable(&text, "PART\tTOOL\tACTION\tBEFORE → AFTER\tREASON", rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(terminal.Cut(strings.TrimSuffix(line, "\n"), width), " "))
	}
	if more := len(parts) - limit; more > 0 {
		fmt.Fprintf(out, "and %s more: --all shows them\n", terminal.Thousands(int64(more)))
	}
	return nil
}

func partPlace(a *compact.Action) string {
	if a.LastSeq > a.Seq {
		return fmt.Sprintf("%d–%d", a.Seq, a.LastSeq)
	}
	return fmt.Sprintf("%d.%d", a.Seq, a.Part)
}

// fewer returns in words how many of so many tokens are saved.
func fewer(saved, of int64) string {
	switch {
	case saved == 0 || of == 0:
		return "unchanged"
	case saved < 0:
		return terminal.Thousands(-saved) + " more"
	}
	return fmt.Sprintf("%s fewer, %.0f %%", terminal.Thousands(saved), 100*float64(saved)/float64(of))
}
