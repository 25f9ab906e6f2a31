package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"
)

// plan is a preview as the API tells of it.
type plan struct {
	From         string `json:"from"`
	ThroughSeq   int64  `json:"through_seq"`
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
	WouldChange  bool   `json:"would_change"`
	Due          bool   `json:"due"`
	Reason       string `json:"reason"`
	Stages       []struct {
		Name        string `json:"stage"`
		Entered     bool   `json:"entered"`
		Actions     int    `json:"actions"`
		TokensSaved int64  `json:"tokens_saved"`
	} `json:"stages"`
	Actions []planned `json:"actions"`
	Report  struct {
		MessagesTotal     int64 `json:"messages_total"`
		MessagesCompacted int   `json:"messages_compacted"`
		ViewTokensBefore  int64 `json:"view_tokens_before"`
		TokensSaved       int64 `json:"tokens_saved"`
		KeptPrefix        struct {
			Tokens int64   `json:"tokens"`
			Share  float64 `json:"share"`
		} `json:"kept_prefix"`
		FailedOpen   []string `json:"failed_open"`
		OverflowRisk *struct {
			OverBy         int64  `json:"over_by"`
			Recommendation string `json:"recommendation"`
		} `json:"overflow_risk"`
	} `json:"report"`
}

// planned is what would be done to one part.
type planned struct {
	Seq          int64  `json:"seq"`
	LastSeq      int64  `json:"last_seq"`
	Part         int    `json:"part"`
	Do           string `json:"do"`
	Tool         string `json:"tool"`
	Reason       string `json:"reason"`
	TokensBefore int64  `json:"tokens_before"`
	TokensAfter  int64  `json:"tokens_after"`
}

// mostParts is how many parts are printed, those that save the most.
const mostParts = 25

// width is how many characters a line of the terminal has.
func width(out *os.File) int {
	const otherwise = 100
	if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 {
		return columns
	}
	return otherwise
}

// write prints the plan: what comes of it, stage by stage, then the parts, the largest savings first.
func (p *plan) write(out io.Writer, id string, most, width int) error {
	r := &p.Report
	fmt.Fprintln(out, fold(fmt.Sprintf("session %s: %s → %s tokens in the view (%s), from the %s%s, through message %d", id, grouped(r.ViewTokensBefore),
		grouped(r.ViewTokensBefore-r.TokensSaved), change(r.TokensSaved, r.ViewTokensBefore), p.From, p.size(), p.ThroughSeq), width))
	fmt.Fprintln(out, fold(p.Reason, width))
	if !p.WouldChange {
		return nil
	}
	fmt.Fprintln(out, fold(fmt.Sprintf("%s of %s messages changed; the first %s tokens stay as they are (%.0f %% of the view)",
		grouped(int64(r.MessagesCompacted)), grouped(r.MessagesTotal), grouped(r.KeptPrefix.Tokens), 100*r.KeptPrefix.Share), width))
	for _, failed := range r.FailedOpen {
		fmt.Fprintln(out, fold("done without what failed: "+failed, width))
	}
	if risk := r.OverflowRisk; risk != nil {
		fmt.Fprintln(out, fold(fmt.Sprintf("still %s tokens too large for the window: %s", grouped(risk.OverBy), risk.Recommendation), width))
	}
	if err := p.writeStages(out); err != nil {
		return err
	}
	return p.writeParts(out, most, width)
}

// size says how large what the plan is made of is, where that is not the view.
func (p *plan) size() string {
	if p.TokensBefore == p.Report.ViewTokensBefore {
		return ""
	}
	return fmt.Sprintf(" of %s tokens", grouped(p.TokensBefore))
}

func (p *plan) writeStages(out io.Writer) error {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "STAGE\tPARTS\tTOKENS SAVED\t")
	for _, s := range p.Stages {
		if s.Entered {
			fmt.Fprintf(table, "%s\t%s\t%s\t\n", s.Name, grouped(int64(s.Actions)), grouped(s.TokensSaved))
		}
	}
	return table.Flush()
}

func (p *plan) writeParts(out io.Writer, most, width int) error {
	parts := slices.SortedStableFunc(slices.Values(p.Actions), func(a, b planned) int {
		return cmp.Compare(b.TokensBefore-b.TokensAfter, a.TokensBefore-a.TokensAfter)
	})
	fmt.Fprintln(out)
	for _, row := range rows(parts[:min(most, len(parts))]) {
		fmt.Fprintln(out, strings.TrimRight(clip(row, width), " "))
	}
	if left := len(parts) - most; left > 0 {
		fmt.Fprintf(out, "and %s more: --all shows them\n", grouped(int64(left)))
	}
	return nil
}

// rows lays parts out in columns, the reason last.
func rows(parts []planned) []string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tTOOL\tACTION\tBEFORE → AFTER\tREASON")
	for _, a := range parts {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s → %s\t%s\n", a.place(), clip(printable(cmp.Or(a.Tool, "-")), 20), a.Do, grouped(a.TokensBefore),
			grouped(a.TokensAfter), printable(a.Reason))
	}
	_ = table.Flush() // into memory
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// place is a part, or the messages from one to another.
func (a *planned) place() string {
	if a.LastSeq > a.Seq {
		return fmt.Sprintf("%d–%d", a.Seq, a.LastSeq)
	}
	return fmt.Sprintf("%d.%d", a.Seq, a.Part)
}

// change says how much less something is, in words.
func change(saved, of int64) string {
	switch {
	case saved == 0 || of == 0:
		return "unchanged"
	case saved < 0:
		return fmt.Sprintf("%s more", grouped(-saved))
	}
	return fmt.Sprintf("%s fewer, %.0f %%", grouped(saved), 100*float64(saved)/float64(of))
}

// grouped writes a number with a comma between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// clip keeps a line within the width of a terminal.
func clip(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width-1, 0)]) + "…"
}

// fold breaks a sentence into lines of the terminal.
func fold(sentence string, width int) string {
	var folded strings.Builder
	column := 0
	for i, word := range strings.Fields(printable(sentence)) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			folded.WriteByte('\n')
			column = 0
		default:
			folded.WriteByte(' ')
			column++
		}
		folded.WriteString(word)
		column += n
	}
	return folded.String()
}
