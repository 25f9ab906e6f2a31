package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

// remarks writes what is odd and what is bad in a file.
func (d *Demo) remarks(file string, r *importer.Report) {
	for _, n := range r.Notes {
		fmt.Fprintf(d.Out, "%s: line %d: %s\n", file, n.Line, n.Text)
	}
	for _, bad := range r.Rejected {
		fmt.Fprintf(d.Out, "%s: line %d: %s (%s)\n", file, bad.Line, bad.Reason, terminal.Count(len(bad.Bytes), "byte"))
	}
}

// fileSummary writes what was in the files: conversation, what cannot be read, and all else by kind.
func (d *Demo) fileSummary() {
	var total importer.Report
	total.Skipped = map[string]int{}
	for _, f := range d.files {
		r := &f.Report
		total.Lines += r.Lines
		total.Imported += r.Imported
		total.Rejected = append(total.Rejected, r.Rejected...)
		for kind, n := range r.Skipped {
			total.Skipped[kind] += n
		}
	}
	fmt.Fprintf(d.Out, "%s with %s: %s of conversation, %s that cannot be read", terminal.Count(len(d.files), "file"),
		terminal.Count(total.Lines, "record"), terminal.Thousands(int64(total.Imported)), terminal.Thousands(int64(len(total.Rejected))))
	for _, kind := range slices.Sorted(maps.Keys(total.Skipped)) {
		fmt.Fprintf(d.Out, ", %s %s", terminal.Thousands(int64(total.Skipped[kind])), kind)
	}
	fmt.Fprint(d.Out, "\n\n")
}

// sums are the figures of several sessions.
type sums struct {
	before, after         int64 // tokens
	longBefore, longAfter int64 // tokens of the compacted sessions
	results               int
	over                  int // sessions that are still over the threshold
}

// table writes each session's sizes.
func (d *Demo) table() error {
	table := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "session\tmessages\ttokens before\tafter\tsaved\tcompactions\tresults persisted\tseconds\t")
	var all sums
	for i := range d.sessions {
		s := &d.sessions[i]
		total := s.state.TotalTokens
		left := s.state.ContextTokens
		if left >= threshold {
			all.over++
		}
		seconds := "-"
		if first := s.crossing(); first != nil {
			seconds = fmt.Sprintf("%.2f", first.FinishedAt.Sub(first.TriggeredAt).Seconds())
			all.longBefore += total
			all.longAfter += left
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", terminal.CutMiddle(s.conv.ID, 44),
			terminal.Thousands(int64(len(s.conv.Messages))), terminal.Thousands(total), terminal.Thousands(left),
			saved(total, left), s.compactions(), len(s.kept), seconds)
		all.before += total
		all.after += left
		all.results += len(s.kept)
	}
	if len(d.sessions) > 1 {
		fmt.Fprintf(table, "all\t\t%s\t%s\t%s\t\t%d\t\t\n",
			terminal.Thousands(all.before), terminal.Thousands(all.after), saved(all.before, all.after), all.results)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	d.explainTable(&all)
	return nil
}

func (d *Demo) explainTable(all *sums) {
	fmt.Fprintf(d.Out, "\nseconds: from the append that crossed %s tokens to the first checkpoint; the target is %s.\n",
		terminal.Thousands(threshold), terminal.Thousands(target*window))
	if all.longBefore > 0 && all.longBefore < all.before {
		fmt.Fprintf(d.Out, "Of the compacted sessions alone, %s of the tokens were saved.\n", saved(all.longBefore, all.longAfter))
	}
	if all.over > 0 {
		verb := "are"
		if all.over == 1 {
			verb = "is"
		}
		fmt.Fprintf(d.Out, "%s %s still over the threshold: what is left there is texts, calls and recent results, "+
			"which stay until there is more to trim.\n", terminal.Count(all.over, "session"), verb)
	}
}

// crossing returns the first compaction of the session, nil for none.
func (s *shownSession) crossing() *session.Run {
	for i := len(s.runs) - 1; i >= 0; i-- {
		if r := &s.runs[i]; r.State == session.RunDone && r.FinishedAt != nil {
			return r
		}
	}
	return nil
}

func (s *shownSession) compactions() (n int) {
	for _, r := range s.runs {
		if r.State == session.RunDone {
			n++
		}
	}
	return n
}

func saved(before, after int64) string {
	if after >= before {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(before-after)/float64(before))
}

// firstKept returns the first session with a result that was persisted, nil for none.
func (d *Demo) firstKept() *shownSession {
	for i := range d.sessions {
		if len(d.sessions[i].kept) > 0 {
			return &d.sessions[i]
		}
	}
	return nil
}

// beforeAndAfter shows a few messages around the first that a compaction changed.
func (d *Demo) beforeAndAfter(ctx context.Context) error {
	s := d.firstKept()
	if s == nil {
		return nil
	}
	full, err := d.API.Context(ctx, s.conv.ID, client.ViewOptions{Full: true})
	if err != nil {
		return err
	}
	compacted, err := d.API.Context(ctx, s.conv.ID, client.ViewOptions{})
	if err != nil {
		return err
	}
	before := &full.Value
	after := &compacted.Value
	at := firstChange(before.Messages, after.Messages)
	fmt.Fprintf(d.Out, "\nThe beginning of %s, before (%s tokens) and after (%s tokens):\n\n",
		s.conv.ID, terminal.Thousands(before.Tokens), terminal.Thousands(after.Tokens))
	for i := max(0, at-2); i < min(at+3, len(before.Messages), len(after.Messages)); i++ {
		d.sideBySide(before, after, i)
	}
	return nil
}

func firstChange(a, b []json.RawMessage) int {
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return i
		}
	}
	return 0
}

// sideBySide writes the beginning of message i of two views in two columns.
func (d *Demo) sideBySide(before, after *protocol.View, i int) {
	column := (d.Width - 5) / 2
	left := messageLines(before.Format, before.Messages[i], column)
	right := messageLines(after.Format, after.Messages[i], column)
	for row := range max(len(left), len(right)) {
		fmt.Fprintf(d.Out, "  %s │ %s\n", padded(at(left, row), column), at(right, row))
	}
	fmt.Fprintf(d.Out, "  %s │\n", padded("", column))
}

// messageLines returns the beginning of a message as lines of a width, and how much more there is.
func messageLines(format session.Format, body []byte, width int) []string {
	const maxLines, maxRows = 6, 3 // lines of a message, and rows of a long line
	var lines []string
	n := 0
	for line := range strings.Lines(terminal.Message(format, body)) {
		line = strings.ReplaceAll(strings.TrimRight(line, " \n"), "\t", "  ")
		if line == "" {
			continue
		}
		if n++; n <= maxLines {
			lines = append(lines, wrapped(line, width, maxRows)...)
		}
	}
	if n > maxLines {
		lines = append(lines, fmt.Sprintf("… %s", terminal.Count(n-maxLines, "more line")))
	}
	return lines
}

// wrapped breaks a line into rows of a width, after a space if there is one near; the last row is cut.
func wrapped(s string, width, rows int) (list []string) {
	for r := []rune(s); ; {
		if rows--; rows == 0 || len(r) <= width {
			return append(list, terminal.Cut(string(r), width))
		}
		end := width
		for i := width; i > width*2/3; i-- {
			if r[i-1] == ' ' {
				end = i
				break
			}
		}
		list, r = append(list, string(r[:end])), r[end:]
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func padded(s string, width int) string { return s + strings.Repeat(" ", width-len([]rune(s))) }

// next suggests what to try.
func (d *Demo) next() error {
	about := d.firstKept()
	if about == nil {
		about = &d.sessions[0]
	}
	id := terminal.ShellLine(about.conv.ID)
	data := terminal.ShellLine(d.Dir)
	fmt.Fprintf(d.Out, "\nAll verified. What to try next:\n\n")
	table := tabwriter.NewWriter(d.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "  make up\tAPI, worker and database in one process; data and key in .varve\n")
	fmt.Fprintf(table, "  make demo FILES=\"…\"\tthe same with conversations of your own\n")
	fmt.Fprintf(table, "  bin/varve up --data %s\tserve what this demonstration left; then, in another terminal:\n", data)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "\n  curl -H \"Authorization: Bearer $(cat %s)\" http://127.0.0.1:8080/v1/sessions\n", filepath.Join(data, "key"))
	fmt.Fprintf(d.Out, "  bin/varve --data %[1]s context --pretty %[2]s\n  bin/varve --data %[1]s runs %[2]s\n", data, id)
	if len(about.kept) > 0 {
		fmt.Fprintf(d.Out, "  bin/varve --data %s results %s %s\n", data, id, about.kept[0].Ref)
	}
	return nil
}
