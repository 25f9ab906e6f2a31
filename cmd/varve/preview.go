package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

type previewCommand struct {
	Session      string `arg:"" help:"Session id."`
	policyChoice `embed:""`
	From         string `enum:",checkpoint,log" default:"" help:"Where to start: checkpoint or log."`
	All          bool   `help:"Every part, also those that stay, with the reason why."`
}

// maxParts is how many parts are printed, those that save the most.
const maxParts = 25

// Run prints what a compaction of the session would do. Nothing is written.
func (c *previewCommand) Run(ctx context.Context, to *console) (err error) {
	request := protocol.PreviewRequest{From: c.From}
	if request.Policy, err = c.policy(); err != nil {
		return err
	}
	o := client.Options{Body: request}
	if c.All {
		o.Query = client.Query{"actions": "all"}
	}
	return show(ctx, to, func(out io.Writer, p *protocol.Preview) error {
		limit := maxParts
		if c.All {
			limit = len(p.Actions)
		}
		return writePlan(out, p, c.Session, limit, terminal.Width(os.Stdout, 100))
	}, client.Preview, o, c.Session)
}

// policyChoice is a policy for one request.
type policyChoice struct {
	Policy  string `xor:"policy" help:"Changes to the sessions' policies: JSON, or a file of it (- is standard input)."`
	Profile string `xor:"policy" help:"A profile for the policy, as varve policy profiles lists them."`
}

// policy returns the policy that the flags name, nil for none.
func (c *policyChoice) policy() (json.RawMessage, error) {
	if c.Profile != "" {
		return fmt.Appendf(nil, `{"profile":%q}`, c.Profile), nil
	}
	return readPolicy(c.Policy)
}

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

// planSentences returns the effect of a compaction in sentences.
func planSentences(p *protocol.Preview, id string) []string {
	r := &p.Report
	n := terminal.Thousands
	source := p.From
	if p.TokensBefore != r.ViewTokensBefore {
		source += fmt.Sprintf(" of %s tokens", n(p.TokensBefore))
	}
	list := []string{
		fmt.Sprintf("session %s: %s → %s tokens in the view (%s), from the %s, through message %d", id,
			n(r.ViewTokensBefore), n(r.ViewTokensBefore-r.TokensSaved), fewer(r.TokensSaved, r.ViewTokensBefore),
			source, p.Through),
		p.Reason,
	}
	if !p.WouldChange {
		return list
	}
	list = append(list, fmt.Sprintf(
		"%s of %s messages changed; the first %s tokens stay as they are (%.0f %% of the view)",
		n(int64(r.MessagesCompacted)), n(r.MessagesTotal), n(r.KeptPrefix.Tokens), 100*r.KeptPrefix.Share))
	for _, failed := range r.FailedOpen {
		list = append(list, "done without what failed: "+failed)
	}
	if risk := r.OverflowRisk; risk != nil {
		list = append(list,
			fmt.Sprintf("still %s tokens too large for the window: %s", n(risk.OverBy), risk.Recommendation))
	}
	return list
}

// writeStages writes what the stages saved.
func writeStages(out io.Writer, stages []compact.StageReport) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "STAGE\tPARTS\tTOKENS SAVED\t")
	for _, s := range stages {
		if s.Entered {
			fmt.Fprintf(table, "%s\t%s\t%s\t\n",
				s.Stage, terminal.Thousands(int64(s.Actions)), terminal.Thousands(s.TokensSaved))
		}
	}
	return table.Flush()
}

// writeParts writes the parts in columns, the reason last, each line cut to the width.
func writeParts(out io.Writer, actions []compact.Action, limit, width int) error {
	parts := slices.SortedStableFunc(slices.Values(actions), func(a, b compact.Action) int {
		return cmp.Compare(b.TokensBefore-b.TokensAfter, a.TokensBefore-a.TokensAfter)
	})
	var text strings.Builder
	shown := parts[:min(limit, len(parts))]
	const header = "PART\tTOOL\tACTION\tBEFORE → AFTER\tREASON"
	err := writeTable(&text, false, shown, header, func(a *compact.Action) []any {
		tokens := terminal.Thousands(int64(a.TokensBefore)) + " → " + terminal.Thousands(int64(a.TokensAfter))
		return []any{place(a.Seq, a.LastSeq, a.Part), terminal.Cut(orDash(a.Tool), 20), a.Kind, tokens, a.Reason}
	})
	if err != nil {
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

// fewer returns in words how much of a number of tokens is saved.
func fewer(saved, of int64) string {
	switch {
	case saved == 0 || of == 0:
		return "unchanged"
	case saved < 0:
		return terminal.Thousands(-saved) + " more"
	}
	return fmt.Sprintf("%s fewer, %.0f %%", terminal.Thousands(saved), 100*float64(saved)/float64(of))
}
