package compactor

import (
	"context"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// inputOf returns a base and the messages after it as the engine takes them.
func inputOf(
	ctx context.Context, s *postgres.Snapshot, p *policy.Policy, base *compact.Checkpoint, tail []postgres.LogMessage,
) (compact.Input, error) {
	rule := ruleOf(*s, p)
	overhead := max(s.OverheadTokens+int(rule.EstimatedUnseen()), 0)
	in := compact.Input{
		Format: s.Format, Policy: *p, WindowTokens: max(int(rule.EstimatedWindow()), 1),
		OverheadTokens: overhead + int(s.SeparateTokens), Base: base, Tail: make([]compact.Entry, 0, len(tail)),
	}
	for _, u := range s.Uploads {
		in.Uploads = append(in.Uploads, compact.Upload(u))
	}
	for len(tail) > 0 {
		e := &tail[0]
		if e.Format != s.Format {
			n := foreign(s.Format, tail)
			entries, err := translated(ctx, s.Format, tail[:n])
			if err != nil {
				return in, err
			}
			in.Tail = append(in.Tail, entries...)
			tail = tail[n:]
			continue
		}
		in.Tail = append(in.Tail, compact.Divide(s.Format, compact.Entry{
			Seq: e.Seq, Tokens: int(e.Tokens), Body: e.Body, ViewTokens: int(e.ViewTokens),
		})...)
		tail = tail[1:]
	}
	return in, nil
}

// foreign returns how many messages of other formats a tail begins with.
func foreign(f session.Format, tail []postgres.LogMessage) int {
	n := 0
	for n < len(tail) && tail[n].Format != f {
		n++
	}
	return n
}

// translated returns messages of other formats in that of their session, as a view shows them. Of a message of several
// steps, a unit begins with each of them.
func translated(ctx context.Context, f session.Format, run []postgres.LogMessage) (entries []compact.Entry, err error) {
	view := make([]wire.Stored, len(run))
	divided := map[int64]bool{} // by seq
	for i := range run {
		m := &run[i]
		view[i] = wire.Stored{Format: m.Format, Body: m.Body, Seq: m.Seq}
		divided[m.Seq] = wire.Steps(m.Format, m.Body) != nil
	}
	list, err := wire.Translate(ctx, f, view)
	parts := 0
	for _, m := range list {
		found, err := wire.Inspect(f, m.Body)
		if err != nil {
			continue // Translate writes nothing that Inspect refuses; its fuzz tests hold it to that
		}
		if n := len(entries); n == 0 || entries[n-1].Seq != m.Seq {
			parts = 0
		}
		speaks := found.Role == "assistant" || found.Role == "model"
		entries = append(entries, compact.Entry{
			Seq: m.Seq, Tokens: found.Tokens, Body: m.Body, Part: parts, Step: parts > 0 && speaks && divided[m.Seq],
		})
		parts += max(len(found.Parts), 1)
	}
	return entries, err
}
