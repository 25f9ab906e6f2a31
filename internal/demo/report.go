package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

// table writes each session's sizes.
func (d *Demo) table() error {
	fmt.Fprintln(d.Out)
	table := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "session\tmessages\ttokens before\tafter\tsaved\tcompactions\tresults persisted\tseconds\t")
	var before, after int64 // tokens
	results, over := 0, 0   // over: sessions that are still over the threshold
	for _, s := range d.sessions {
		total, now := s.state.TotalTokens, s.state.ContextTokens
		compactions, seconds := s.compactions()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", terminal.Cut(s.conv.ID, 44),
			terminal.Thousands(int64(len(s.conv.Messages))), terminal.Thousands(total), terminal.Thousands(now),
			saved(total, now), compactions, len(s.kept), seconds)
		before += total
		after += now
		results += len(s.kept)
		if now >= threshold {
			over++
		}
	}
	if len(d.sessions) > 1 {
		fmt.Fprintf(table, "all\t\t%s\t%s\t%s\t\t%d\t\t\n",
			terminal.Thousands(before), terminal.Thousands(after), saved(before, after), results)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\nseconds: from the append that crossed %s tokens to the first checkpoint; the target is %s.\n",
		terminal.Thousands(threshold), terminal.Thousands(target))
	if over > 0 {
		fmt.Fprintf(d.Out, "Still over the threshold: %s of which texts, calls and recent results remain; "+
			"they stay until there is more to trim.\n", terminal.Count(over, "session"))
	}
	return nil
}

// compactions returns how many compactions ended well, and how many seconds the first of them took.
func (s *shownSession) compactions() (n int, seconds string) {
	seconds = "-"
	for i := range s.runs { // newest first
		if r := &s.runs[i].Value; r.State == session.RunDone && r.FinishedAt != nil {
			n++
			seconds = fmt.Sprintf("%.2f", r.FinishedAt.Sub(r.TriggeredAt).Seconds())
		}
	}
	return n, seconds
}

// saved returns how much smaller after is than before.
func saved(before, after int64) string {
	if after >= before {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(before-after)/float64(before))
}

// firstKept returns the first session with a result that was persisted, or the first one.
func (d *Demo) firstKept() *shownSession {
	i := slices.IndexFunc(d.sessions, func(s *shownSession) bool { return len(s.kept) > 0 })
	return d.sessions[max(i, 0)]
}

// firstTrimmed shows the first message of a view with a trimmed result, before and after the compaction.
func (d *Demo) firstTrimmed(ctx context.Context) error {
	s := d.firstKept()
	view, err := client.ReadContext.Call(ctx, d.API, s.conv.ID)
	if err != nil {
		return err
	}
	for _, message := range view.Value.Messages {
		seq := s.trimmedIn(message)
		if seq == 0 {
			continue
		}
		fmt.Fprintf(d.Out, "\nMessage %d of %s, before (-) and after (+) the compaction:\n\n", seq, s.conv.ID)
		d.beginning("-", terminal.Message(s.conv.Format, s.conv.Messages[seq-1].Body))
		d.beginning("+", terminal.Message(s.conv.Format, message))
		return nil
	}
	return nil
}

// trimmedIn returns the seq of the tool message that stands in the view as message, 0 if none of its results is
// trimmed. A user's message that names results is a summary.
func (s *shownSession) trimmedIn(message []byte) int64 {
	for i := range s.kept {
		r := &s.kept[i].Value
		if bytes.Contains(message, []byte(r.Ref)) && !bytes.Contains(message, []byte("[Summary of messages")) {
			return r.Seq
		}
	}
	return 0
}

// beginning writes the first lines of a text behind a mark, and how many more there are.
func (d *Demo) beginning(mark, text string) {
	const maxLines = 8
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[:min(maxLines, len(lines))] {
		line = terminal.Cut(strings.ReplaceAll(line, "\t", "  "), d.Width-4)
		fmt.Fprintf(d.Out, "  %s\n", strings.TrimRight(mark+" "+line, " "))
	}
	if more := len(lines) - maxLines; more > 0 {
		fmt.Fprintf(d.Out, "  %s … %s\n", mark, terminal.Count(more, "more line"))
	}
}

//go:embed next.tmpl
var nextText string

var nextTemplate = template.Must(template.New("next").Parse(nextText))

// next suggests what to try.
func (d *Demo) next() error {
	s := d.firstKept()
	data := terminal.ShellLine(d.Dir)
	shown := map[string]string{
		"Session": terminal.ShellLine(s.conv.ID), "Data": data, "Key": filepath.Join(data, "key"),
	}
	if len(s.kept) > 0 {
		shown["Ref"] = s.kept[0].Value.Ref
	}
	return nextTemplate.Execute(d.Out, shown)
}
