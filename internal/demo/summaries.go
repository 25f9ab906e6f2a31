package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

// summaryPatience is how long the model may take for all summaries.
const summaryPatience = time.Minute

// due returns in words which sessions wait for the model's summary, "" for none.
func (d *Demo) due(ctx context.Context) (waiting string, err error) {
	for _, s := range d.sessions {
		found, err := client.ListSummaries.Call(ctx, d.API, s.conv.ID)
		if err != nil {
			return "", err
		}
		isDue := func(one protocol.Summary) bool { return one.State == string(session.SummaryDue) }
		if slices.ContainsFunc(found.Value.Summaries, isDue) {
			waiting += " " + s.conv.ID
		}
	}
	return waiting, nil
}

// waitForModel returns when the model's summaries are in the views, or it has failed, or the time is up: a view has
// another summary then.
func (d *Demo) waitForModel(ctx context.Context) error {
	if d.Model == "" {
		return nil
	}
	fmt.Fprintf(d.Notes, "waiting for %s\n", d.Model)
	for ends := time.Now().Add(summaryPatience); ; {
		waiting, err := d.due(ctx)
		if err != nil {
			return err
		}
		for _, s := range d.sessions {
			if err := d.refresh(ctx, s); err != nil {
				return err
			}
		}
		switch {
		case waiting == "":
			return nil
		case time.Now().After(ends):
			fmt.Fprintf(d.Out, "\nAfter %s %s has not written the summaries of%s: one without a model is there.\n",
				summaryPatience, d.Model, waiting)
			return nil
		}
		if err := d.API.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// summaries shows who wrote the summaries, what they cost, and the beginning of one.
func (d *Demo) summaries(ctx context.Context) error {
	for _, s := range d.sessions {
		text, err := d.summaryOf(ctx, s)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		writer, err := d.writer(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.Out, "\nThe older messages have become summaries, written %s. That of %s begins:\n\n", writer,
			s.conv.ID)
		d.beginning("+", written(text))
		return nil
	}
	return nil
}

// written returns a summary without what stands before its text: the headings and the user's words, which are copied.
func written(text string) string {
	lines := strings.Split(text, "\n")
	begins := slices.IndexFunc(lines, func(line string) bool {
		line = strings.TrimSpace(line)
		return line != "" && !strings.HasPrefix(line, "[") && line != "## user" && line != "## The user's words"
	})
	return strings.Join(lines[max(begins, 0):], "\n")
}

// summaryOf returns the text of the summary in a session's view, "" for none.
func (d *Demo) summaryOf(ctx context.Context, s *shownSession) (string, error) {
	view, err := client.ReadContext.Call(ctx, d.API, s.conv.ID)
	if err != nil {
		return "", err
	}
	for _, message := range view.Value.Messages {
		if text := terminal.Message(s.conv.Format, message); strings.Contains(text, "[Summary of messages") {
			return text, nil
		}
	}
	return "", nil
}

// writer returns in words what wrote the summaries, with what a model used and cost.
func (d *Demo) writer(ctx context.Context) (string, error) {
	if d.Model == "" {
		return "without a model", nil
	}
	written, reason, err := d.byModel(ctx)
	if err != nil {
		return "", err
	}
	if written == 0 {
		return "without " + d.Model + ": " + cmp.Or(reason, "it has not answered yet"), nil
	}
	limits, err := client.Route[protocol.Limits]("GET limits").Call(ctx, d.API)
	if err != nil {
		return "", err
	}
	for _, used := range limits.Value.Used.Models {
		if used.Model == d.Model {
			return fmt.Sprintf("by %s (%s, %s tokens read and %s written, cost %.4f)", d.Model,
				terminal.Count(int(used.Calls), "call"), terminal.Thousands(used.Input),
				terminal.Thousands(used.Output), float64(used.CostMicros)/1e6), nil
		}
	}
	return "by " + d.Model, nil
}

// byModel returns how many summaries in the views the model has written, and why it has failed to write another.
func (d *Demo) byModel(ctx context.Context) (written int, reason string, err error) {
	for _, s := range d.sessions {
		found, err := client.ListSummaries.Call(ctx, d.API, s.conv.ID)
		if err != nil {
			return 0, "", err
		}
		for i := range found.Value.Summaries {
			one := &found.Value.Summaries[i]
			reason = cmp.Or(reason, one.Reason)
			if one.Writer == d.Model {
				written++
			}
		}
	}
	return written, reason, nil
}
