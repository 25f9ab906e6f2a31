package compactor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

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
		OverheadTokens: overhead + int(s.SeparateTokens), MaxImages: int(rule.MaxImages), Base: base,
	}
	for _, u := range s.Uploads {
		in.Uploads = append(in.Uploads, compact.Upload{
			Ref: u.Ref, CallID: u.CallID, TextDigest: [32]byte(u.TextDigest),
		})
	}
	in.Pins = pinsOf(s.Pins)
	var err error
	in.Tail, err = entriesOf(ctx, s.Format, forgetThoughts(s.Format, base, tail))
	return in, err
}

// forgetThoughts returns messages of Responses without the ids that would name reasoning which was removed: a
// checkpoint does not tell where messages are missing, as the log does.
func forgetThoughts(f session.Format, base *compact.Checkpoint, tail []postgres.LogMessage) []postgres.LogMessage {
	if f != session.OpenAIResponses {
		return tail
	}
	next := int64(1)
	if base != nil {
		next = base.Through + 1
	}
	var forgets wire.Forgetting
	tail = slices.Clone(tail)
	for i := range tail {
		m := &tail[i]
		m.Body = forgets.Item(m.Format, m.Body, m.Seq > next)
		next = m.Seq + 1
	}
	return tail
}

// pinsOf returns what callers have pinned as the engine takes it.
func pinsOf(stored []session.Pin) []compact.Pin {
	pins := make([]compact.Pin, len(stored))
	for i := range stored {
		p := &stored[i]
		pins[i] = compact.Pin{Ref: p.Ref, Seq: p.Seq, Part: session.WholeMessage, Text: p.Text}
		if p.Part != nil {
			pins[i].Part = *p.Part
		}
	}
	return pins
}

// entriesOf returns messages of the log as the engine takes them, in the format of their session.
func entriesOf(
	ctx context.Context, f session.Format, messages []postgres.LogMessage,
) (entries []compact.Entry, err error) {
	entries = make([]compact.Entry, 0, len(messages))
	for len(messages) > 0 {
		e := &messages[0]
		if e.Format != f {
			n := foreign(f, messages)
			others, err := translated(ctx, f, messages[:n])
			if err != nil {
				return entries, err
			}
			entries = append(entries, others...)
			messages = messages[n:]
			continue
		}
		entries = append(entries, compact.Divide(f, compact.Entry{
			Seq: e.Seq, Tokens: int(e.Tokens), Body: e.Body, ViewTokens: int(e.ViewTokens),
		})...)
		messages = messages[1:]
	}
	return entries, nil
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
	from := translation{run: view, facts: make([]*wire.Facts, len(run))}
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
			Appended: from.appended(&m, parts),
		})
		parts += max(len(found.Parts), 1)
	}
	return entries, err
}

// translation finds what the parts of translated messages were when they were appended.
type translation struct {
	run   []wire.Stored
	facts []*wire.Facts // of the run, as far as they were needed
}

// appended returns where the parts of a translated message were appended. before is how many parts the messages of its
// seq had that came first: what was appended as no part of its own is numbered behind all that were.
func (t *translation) appended(m *wire.Translated, before int) []compact.Appended {
	parts := make([]compact.Appended, len(m.Origins))
	for i, at := range m.Origins {
		if at.Part < 0 {
			parts[i] = compact.Appended{Seq: m.Seq, Part: t.partsOf(m.Seq) + before + i}
			continue
		}
		of := &t.run[at.Message]
		parts[i] = compact.Appended{Seq: of.Seq, Part: at.Part}
		if part := &t.read(at.Message).Parts[at.Part]; part.Kind == wire.Result || part.Kind == wire.Call {
			content := wire.ResultText(of.Format, of.Body, *part)
			parts[i].SHA256 = sha256.Sum256(content.Stored)
		}
	}
	return parts
}

// read returns the facts of message i of the run.
func (t *translation) read(i int) *wire.Facts {
	if t.facts[i] == nil {
		found, _ := wire.Inspect(t.run[i].Format, t.run[i].Body) // which was accepted when it was appended
		t.facts[i] = &found
	}
	return t.facts[i]
}

// partsOf returns how many parts the message of a seq has.
func (t *translation) partsOf(seq int64) int {
	i, _ := slices.BinarySearchFunc(t.run, seq, func(m wire.Stored, seq int64) int { return cmp.Compare(m.Seq, seq) })
	return len(t.read(i).Parts)
}
