package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/varve-dev/varve/internal/session"
)

// read says what was in the files: what became a message, what is no conversation, what is odd, and what is bad.
func (d *demonstration) read(files []imported) {
	lines, conversation, bad := 0, 0, 0
	skipped := map[string]int{}
	for _, f := range files {
		lines, conversation, bad = lines+f.Lines, conversation+f.Imported, bad+len(f.Rejected)
		for kind, n := range f.Skipped {
			skipped[kind] += n
		}
		for _, n := range f.Notes {
			fmt.Fprintf(d.out, "%s: line %d: %s\n", f.File, n.Line, n.Text)
		}
		for _, r := range f.Rejected {
			fmt.Fprintf(d.out, "%s: line %d: %s (%s, kept in %s)\n", f.File, r.Line, r.Reason, count(r.Bytes, "byte"), f.RejectedFile)
		}
	}
	fmt.Fprintf(d.out, "%s with %s: %s of conversation, %s that cannot be read", count(len(files), "file"), count(lines, "record"), thousands(int64(conversation)), thousands(int64(bad)))
	for _, kind := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(d.out, ", %s %s", thousands(int64(skipped[kind])), kind)
	}
	fmt.Fprint(d.out, "\n\n")
}

// table shows each session's sizes.
func (d *demonstration) table() error {
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "session\tmessages\ttokens before\tafter\tsaved\tcompactions\tresults persisted\tseconds\t")
	var before, after, longBefore, longAfter int64
	results, over := 0, 0
	for i := range d.shown {
		s := &d.shown[i]
		if s.state.ContextTokens >= demoThreshold {
			over++
		}
		seconds, compactions := "-", 0
		if first := s.crossing(); first != nil {
			seconds = fmt.Sprintf("%.2f", first.FinishedAt.Sub(first.TriggeredAt).Seconds())
			longBefore, longAfter = longBefore+s.state.TotalTokens, longAfter+s.state.ContextTokens
		}
		for _, r := range s.runs {
			if r.State == session.RunDone {
				compactions++
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", middle(s.conv.ID, 44), thousands(int64(len(s.conv.Messages))), thousands(s.state.TotalTokens),
			thousands(s.state.ContextTokens), saved(s.state.TotalTokens, s.state.ContextTokens), compactions, len(s.kept), seconds)
		before, after, results = before+s.state.TotalTokens, after+s.state.ContextTokens, results+len(s.kept)
	}
	if len(d.shown) > 1 {
		fmt.Fprintf(table, "all\t\t%s\t%s\t%s\t\t%d\t\t\n", thousands(before), thousands(after), saved(before, after), results)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nseconds: from the append that crossed %s tokens to the first checkpoint; the target is %s.\n",
		thousands(demoThreshold), thousands(demoTarget*demoWindow))
	if longBefore > 0 && longBefore < before {
		fmt.Fprintf(d.out, "Of the compacted sessions alone, %s of the tokens were saved.\n", saved(longBefore, longAfter))
	}
	if over > 0 {
		fmt.Fprintf(d.out, "%s still over the threshold: what is left there is texts, calls and recent results, which stay until there is more to trim.\n", stay(over))
	}
	return nil
}

func stay(sessions int) string {
	if sessions == 1 {
		return "1 session is"
	}
	return fmt.Sprintf("%d sessions are", sessions)
}

func saved(before, after int64) string {
	if after >= before {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(before-after)/float64(before))
}

// beforeAndAfter shows a few messages around the first that a compaction changed.
func (d *demonstration) beforeAndAfter(ctx context.Context) error {
	for i := range d.shown {
		s := &d.shown[i]
		if len(s.kept) == 0 {
			continue
		}
		full, err := d.view(ctx, s, url.Values{"view": {"full"}})
		if err != nil {
			return err
		}
		compacted, err := d.view(ctx, s, nil)
		if err != nil {
			return err
		}
		at := firstChange(full.Messages, compacted.Messages)
		fmt.Fprintf(d.out, "\nThe beginning of %s, before (%s tokens) and after (%s tokens):\n\n", s.conv.ID, thousands(full.Tokens), thousands(compacted.Tokens))
		for i := max(0, at-2); i < min(at+3, len(full.Messages), len(compacted.Messages)); i++ {
			d.sideBySide(full.Messages[i], compacted.Messages[i])
		}
		return nil
	}
	return nil
}

func (d *demonstration) view(ctx context.Context, s *demoSession, query url.Values) (v view, err error) {
	_, err = d.client.decode(ctx, call{method: http.MethodGet, path: []string{"sessions", s.conv.ID, "context"}, query: query}, &v)
	return v, err
}

func firstChange(a, b []json.RawMessage) int {
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return i
		}
	}
	return 0
}

// messageLines is the beginning of a message as text, in lines of a width, and how much more there is.
func messageLines(raw json.RawMessage, width int) []string {
	const most, rows = 6, 3 // lines of a message, and rows of a long line
	var text bytes.Buffer
	one := view{Messages: []json.RawMessage{raw}}
	if err := one.write(&text); err != nil {
		return nil
	}
	_, body, _ := strings.Cut(text.String(), "\n\n") // the head says how long the view is
	var lines []string
	n := 0
	for line := range strings.Lines(body) {
		line = strings.ReplaceAll(strings.TrimRight(line, " \n"), "\t", "  ")
		if line == "" {
			continue
		}
		if n++; n <= most {
			lines = append(lines, wrapped(line, width, rows)...)
		}
	}
	if n > most {
		lines = append(lines, fmt.Sprintf("… %s", count(n-most, "more line")))
	}
	return lines
}

// wrapped breaks a line into rows of a width, after a space if there is one near; the last row is cut.
func wrapped(s string, width, rows int) (list []string) {
	for r := []rune(s); ; {
		if rows--; rows == 0 || len(r) <= width {
			return append(list, short(string(r), width))
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

func (d *demonstration) sideBySide(before, after json.RawMessage) {
	column := (d.width - 5) / 2
	left, right := messageLines(before, column), messageLines(after, column)
	for i := range max(len(left), len(right)) {
		fmt.Fprintf(d.out, "  %s │ %s\n", padded(at(left, i), column), at(right, i))
	}
	fmt.Fprintf(d.out, "  %s │\n", padded("", column))
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func padded(s string, width int) string { return s + strings.Repeat(" ", width-len([]rune(s))) }

// short cuts a text to a width in characters.
func short(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// middle cuts a name to a width in characters and keeps both of its ends.
func middle(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	tail := (width - 1) / 2
	return string(r[:width-1-tail]) + "…" + string(r[len(r)-tail:])
}

// next says what to try.
func (d *demonstration) next() error {
	about := &d.shown[0]
	for i := range d.shown {
		if len(about.kept) == 0 {
			about = &d.shown[i]
		}
	}
	id, data := shellLine([]string{about.conv.ID}), shellLine([]string{d.dir})
	fmt.Fprintf(d.out, "\nAll verified. What to try next:\n\n")
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "  make up\tAPI, worker and database in one process; data and key in .varve\n")
	fmt.Fprintf(table, "  make demo FILES=\"…\"\tthe same with conversations of your own\n")
	fmt.Fprintf(table, "  bin/varve up --data %s\tserve what this demonstration left; then, in another terminal:\n", data)
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n  curl -H \"Authorization: Bearer $(cat %s)\" http://127.0.0.1:8080/v1/sessions\n", filepath.Join(data, "key"))
	fmt.Fprintf(d.out, "  bin/varve --data %[1]s context --pretty %[2]s\n  bin/varve --data %[1]s runs %[2]s\n", data, id)
	if len(about.kept) > 0 {
		fmt.Fprintf(d.out, "  bin/varve --data %s results %s %s\n", data, id, about.kept[0].Ref)
	}
	return nil
}

// thousands writes a number with separators.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(int64(n)) + " " + what + "s"
}

// terminalWidth is the width to cut lines to.
func terminalWidth(out *os.File) int {
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 120
	}
	return min(max(width, 60), 160)
}
