package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/varve-dev/varve/internal/session"
)

// table shows each session's sizes.
func (d *demonstration) table() error {
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "session\tmessages\ttokens before\tafter\tsaved\tcompactions\tresults persisted\tseconds\t")
	var before, after, longBefore, longAfter int64
	results := 0
	for i := range d.shown {
		s := &d.shown[i]
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
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", short(s.conv.ID, 44), thousands(int64(len(s.conv.Messages))), thousands(s.state.TotalTokens),
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
		thousands(int64(demoTrigger*demoWindow)), thousands(int64(demoTarget*demoWindow)))
	if longBefore > 0 && longBefore < before {
		fmt.Fprintf(d.out, "Of the compacted sessions alone, %s of the tokens were saved.\n", saved(longBefore, longAfter))
	}
	return nil
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
			d.sideBySide(messageLines(full.Messages[i]), messageLines(compacted.Messages[i]))
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

// messageLines is the beginning of a message as text, and how much more there is.
func messageLines(raw json.RawMessage) []string {
	const most = 7
	var text bytes.Buffer
	one := view{Messages: []json.RawMessage{raw}}
	if err := one.write(&text); err != nil {
		return nil
	}
	_, body, _ := strings.Cut(text.String(), "\n\n") // the head says how long the view is
	var lines []string
	for line := range strings.Lines(body) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			lines = append(lines, strings.ReplaceAll(line, "\t", "  "))
		}
	}
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most:most], fmt.Sprintf("… %d more lines", more))
	}
	return lines
}

func (d *demonstration) sideBySide(left, right []string) {
	column := (d.width - 5) / 2
	for i := range max(len(left), len(right)) {
		fmt.Fprintf(d.out, "  %s │ %s\n", padded(line(left, i), column), short(line(right, i), column))
	}
	fmt.Fprintf(d.out, "  %s │\n", padded("", column))
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func padded(s string, width int) string {
	s = short(s, width)
	return s + strings.Repeat(" ", width-len([]rune(s)))
}

// short cuts a text to a width in characters.
func short(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// next says what to try.
func (d *demonstration) next() {
	var about *demoSession
	for i := range d.shown {
		if s := &d.shown[i]; about == nil || len(s.kept) > 0 && len(about.kept) == 0 {
			about = s
		}
	}
	id := shellLine([]string{about.conv.ID})
	data := shellLine([]string{d.dir})
	fmt.Fprintf(d.out, `
All verified. What to try next:

  make up                            API, worker and database in one process, empty, data and key in .varve
  bin/varve up --data %[1]s    the same with what this demonstration left; then, from another terminal:

  curl -H "Authorization: Bearer $(cat %[2]s)" http://127.0.0.1:8080/v1/sessions
  bin/varve --data %[1]s context --pretty %[3]s
  bin/varve --data %[1]s runs %[3]s
`, data, filepath.Join(data, "key"), id)
	if len(about.kept) > 0 {
		fmt.Fprintf(d.out, "  bin/varve --data %s results %s %s\n", data, id, about.kept[0].Ref)
	}
	fmt.Fprintf(d.out, "  make demo FILES=\"…\"                with conversations of your own\n")
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
	return fmt.Sprintf("%d %ss", n, what)
}

// terminalWidth is the width to cut lines to.
func terminalWidth(out *os.File) int {
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 120
	}
	return max(width, 60)
}
