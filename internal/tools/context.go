package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/transcript"
	"github.com/varve-dev/varve/internal/view"
)

// contextAnswer is the structured answer of get_context.
type contextAnswer struct {
	Content     string `json:"content"`
	Messages    int    `json:"messages"`
	Tokens      int64  `json:"tokens"`
	Total       int64  `json:"total_messages"`
	Window      int64  `json:"window_tokens,omitempty"`
	CompactedTo int64  `json:"compacted_to,omitempty"`
	Omitted     int    `json:"omitted,omitempty"`
}

// defaultContext is how many tokens get_context returns if the call does not say.
const defaultContext = readback.DefaultBytes / 4

// largeView is the size in bytes above which a view is weighed.
const largeView = 1 << 20

// context runs get_context. A view that is smaller than its limit has all its messages, else the newest units.
func (r *Runner) context(ctx context.Context, with arguments) (*Answer, error) {
	limit := with.number("max_tokens")
	if limit == 0 {
		limit = defaultContext
	}
	used, done := context.WithCancel(ctx)
	defer done()
	want := view.Request{MaxTokens: limit, Largest: largeView}
	want.Admit = func(weight int64) error {
		turn, err := r.Memory.Acquire(ctx, r.At.Tenant, weight)
		if err == nil {
			context.AfterFunc(used, turn.Done)
		}
		return err
	}
	want.Heavy = func(bytes int64, work func() error) error {
		return r.CPU.Do(ctx, r.At.Tenant, admit.HeavyWork(bytes), work)
	}
	var stored postgres.View
	read := postgres.ViewRead{MaxTokens: limit, Largest: want.LargestWhole(largeView)}
	if err := r.Store.ViewInto(ctx, r.At, read, &stored); err != nil {
		return nil, err
	}
	made, notes, err := r.view(ctx, &want, &stored)
	var small *session.CannotFitError
	if errors.As(err, &small) {
		return nil, wrong("max_tokens", "%d are too few: the newest unit alone has more; ask for at least %d, or read "+
			"messages with %s", limit, small.Minimum, callOf(GetMessages, object{"from_seq": max(stored.LastSeq, 1)}))
	}
	if err != nil {
		return nil, err
	}
	answer := contextAnswer{
		Tokens: made.Tokens, Total: stored.LastSeq, Window: stored.Window, CompactedTo: stored.Through,
		Omitted: notes.Omitted.Messages,
	}
	if err := answer.write(made); err != nil {
		return nil, err
	}
	return answer.framed(), nil
}

// view makes the view that is wanted of the stored one, of only the end of a long log where that is enough.
func (r *Runner) view(
	ctx context.Context, want *view.Request, stored *postgres.View,
) (made *postgres.View, notes view.Notes, err error) {
	render := func() error {
		return want.Heavy(stored.Bytes(), func() (err error) {
			made, notes, err = want.Make(ctx, stored)
			return err
		})
	}
	enough := false
	if stored.LeftOut && want.BoundsEnd(stored) {
		enough, err = want.FromEnd(ctx, r.Store, r.At, stored, render)
	}
	if err == nil && !enough {
		if err = want.Fill(ctx, r.Store, r.At, stored); err == nil {
			err = render()
		}
	}
	var broken *view.BrokenError
	if errors.As(err, &broken) {
		return want.LastGood(ctx, r.Store, r.At, stored, err)
	}
	return made, notes, err
}

// write sets the content to the messages of a view.
func (a *contextAnswer) write(made *postgres.View) error {
	var out strings.Builder
	list := [][]byte{made.System, made.Tail}
	if made.Bodies != nil {
		list = append(list[:1], made.Bodies...)
	}
	for _, joined := range list {
		bodies, err := view.Split(joined)
		if err != nil {
			return err
		}
		for _, body := range bodies {
			out.WriteString(transcript.Message(made.Format, body, 0))
			a.Messages++
		}
	}
	a.Content = strings.TrimPrefix(out.String(), "\n")
	return nil
}

func (a *contextAnswer) framed() *Answer {
	head := fmt.Sprintf("[get_context: %d messages, ~%d tokens, of a log of %d messages", a.Messages, a.Tokens, a.Total)
	if a.Omitted > 0 {
		head += fmt.Sprintf("; %d older messages have no room, a larger max_tokens has them", a.Omitted)
	}
	return &Answer{Text: head + asData + a.Content + "[End of the context]", Structured: a}
}

// compactionAnswer is the structured answer of request_compaction.
type compactionAnswer struct {
	Run    string `json:"run"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// compact runs request_compaction. A compaction that is queued or running already is the one that was asked for.
func (r *Runner) compact(ctx context.Context, with arguments) (*Answer, error) {
	run, _, err := r.Store.Compact(ctx, r.At, nil)
	if err != nil {
		return nil, err
	}
	made := compactionAnswer{Run: run.ID.String(), State: string(run.State), Reason: with.text("reason")}
	text := fmt.Sprintf("[request_compaction: %s, run %s. The context is smaller from the next turn on; what leaves "+
		"it stays readable by its ref]", made.State, made.Run)
	return &Answer{Structured: made, Text: text}, nil
}
