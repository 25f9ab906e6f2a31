package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// logWalk is what a pass over a log adds up and remembers.
type logWalk struct {
	last      int64 // seq
	gaps      []session.MessagesRef
	removals  map[int64]bool // the seqs that removals took
	total     int64          // tokens
	context   int64          // tokens that the view has of it
	tailBytes int64
	pinned    int64 // the last of the leading system messages, superseded ones aside
	unpinned  int64 // the first message that is not one, 0 for none
}

// messages reads the whole log, page by page.
func (i *inspection) messages(ctx context.Context) error {
	i.log.removals = map[int64]bool{}
	for read := int64(0); ; {
		page, err := i.audit.Messages(ctx, read)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for m := range page {
			i.message(&page[m])
		}
		read = page[len(page)-1].Seq
	}
	if i.log.last < i.audit.LastSeq {
		i.log.gaps = append(i.log.gaps, session.MessagesRef{First: i.log.last + 1, Last: i.audit.LastSeq})
	}
	i.gaps()
	return nil
}

// namedResults reports the results that checkpoints name or the log should have, and that are not there.
func (i *inspection) namedResults() {
	maps.DeleteFunc(i.wanted, func(seq int64, _ []wantedRef) bool { return i.isSkipped(seq) })
	for _, seq := range slices.Sorted(maps.Keys(i.wanted)) {
		for _, w := range i.wanted[seq] {
			i.lost(seq, w)
		}
	}
}

// lost reports a result that the log should have. The message that is to blame, or a gap, is reported already.
func (i *inspection) lost(seq int64, w wantedRef) {
	for f := range i.report.Findings {
		at := &i.report.Findings[f]
		isLog := slices.Contains([]Kind{Message, Missing, Pack, Hole}, at.Kind)
		if isLog && at.Seq <= seq && seq <= max(at.Seq, at.LastSeq) {
			return
		}
	}
	if w.sum != nil {
		i.add(Finding{Kind: Result, Ref: w.ref, Seq: seq}, "it lies in the log, and message %d does not have it", seq)
		return
	}
	i.add(Finding{Kind: Ref, Ref: w.ref, Seq: seq, Checkpoint: w.checkpoint},
		"the checkpoint names the result, which is neither persisted nor in the log")
}

func (i *inspection) message(m *postgres.AuditedMessage) {
	i.report.Messages++
	i.report.Bytes += int64(len(m.Body) + len(m.ViewBody))
	if m.Seq > i.audit.LastSeq {
		i.report.Unexplained += int64(len(m.Body))
		i.add(Finding{Kind: Extra, Seq: m.Seq}, "the session's last seq is %d", i.audit.LastSeq)
		return
	}
	i.walk(m)
	if !m.Packed {
		i.content(m)
	} else if !i.isInPack(m.Seq) {
		i.nowhere(m.Seq)
	}
}

// nowhere reports a message whose bytes are gone, together with those before it.
func (i *inspection) nowhere(seq int64) {
	if n := len(i.report.Findings); n > 0 {
		f := &i.report.Findings[n-1]
		if f.Kind == Pack && f.Name == nowhere && max(f.Seq, f.LastSeq) == seq-1 {
			f.LastSeq = seq
			return
		}
	}
	i.add(Finding{Kind: Pack, Seq: seq, Name: nowhere}, "the bytes are neither in a row nor in exactly one pack")
}

const nowhere = "no pack"

// content checks the bytes of a message, and what was extracted from them.
func (i *inspection) content(m *postgres.AuditedMessage) {
	if m.Digest == nil && !m.Packed {
		i.report.Undigested++
	}
	found, err := wholeMessage(m)
	if err != nil {
		i.report.Unexplained += int64(len(m.Body))
		i.add(Finding{Kind: Message, Seq: m.Seq}, "%v", err)
		return
	}
	if wrong := wrongColumns(m, &found); len(wrong) > 0 {
		i.add(Finding{Kind: Columns, Seq: m.Seq, Name: strings.Join(wrong, ", ")},
			"the columns are not what is in the body")
	}
	if m.ViewBody != nil {
		if _, err := wire.Accept(m.Format, m.ViewBody); err != nil {
			i.add(Finding{Kind: ViewBody, Seq: m.Seq}, "what views show of it is no message of %s: %v", m.Format, err)
		}
	}
	i.findWanted(m, &found)
	i.dropMentioned(m.Body)
}

// wholeMessage returns what is in a message, or why it is not what came in.
func wholeMessage(m *postgres.AuditedMessage) (found wire.Facts, err error) {
	if err := session.CheckDigest(m.Body, m.Digest); err != nil {
		return found, err
	}
	if err := rawjson.Check(m.Body, rawjson.Limits{}); err != nil {
		return found, fmt.Errorf("its body is not JSON: %w", err)
	}
	if found, err = wire.Inspect(m.Format, m.Body); err != nil {
		err = fmt.Errorf("its body is not a message of %s: %w", m.Format, err)
	}
	return found, err
}

// wrongColumns returns the names of the columns that do not hold what is in the message.
func wrongColumns(m *postgres.AuditedMessage, found *wire.Facts) (wrong []string) {
	want := extracted(found)
	if m.Packed {
		m.Calls, m.Answers = want.Calls, want.Answers // only its shape has them
	}
	for name, same := range map[string]bool{
		"role":        m.Role == want.Role,
		"tokens":      m.Tokens == int64(want.Tokens),
		"calls":       slices.Equal(m.Calls, want.Calls),
		"answers":     slices.Equal(m.Answers, want.Answers),
		"starts_unit": m.StartsUnit == want.StartsUnit,
		"flags":       !m.HasShape() || wire.Flags(m.Flags).Agree(found.Flags),
		"shape":       !m.HasShape() || m.ShapeFits(),
	} {
		if !same {
			wrong = append(wrong, name)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// extracted returns what the columns of a message have, as the database can hold it.
func extracted(found *wire.Facts) session.NewMessage {
	m := session.NewMessage{
		Role: postgres.Text(found.Role), Tokens: found.Tokens, StartsUnit: found.StartsUnit, Flags: int32(found.Flags),
	}
	for p := range found.Parts {
		switch id := postgres.Text(found.Parts[p].CallID); found.Parts[p].Kind {
		case wire.Call:
			m.Calls = append(m.Calls, id)
		case wire.Result:
			m.Answers = append(m.Answers, id)
		}
	}
	return m
}

// walk adds a message to the sums.
func (i *inspection) walk(m *postgres.AuditedMessage) {
	w := &i.log
	if m.Seq > w.last+1 {
		w.gaps = append(w.gaps, session.MessagesRef{First: w.last + 1, Last: m.Seq - 1})
	}
	w.last = m.Seq
	switch {
	case w.unpinned > 0, m.Superseded:
	case m.Flags&int32(wire.FlagPinned) != 0:
		w.pinned = m.Seq
	default:
		w.unpinned = m.Seq
	}
	if m.Removed {
		w.removals[m.RemovedSeq] = true
		return
	}
	w.total += m.Tokens
	switch {
	case m.Seq <= i.audit.Separate:
		w.context += m.Tokens
	case m.Seq > i.audit.Through:
		w.context += m.ViewTokens
	}
	if m.Seq > i.audit.Through {
		w.tailBytes += m.Size
	}
}

// gaps finds the messages that are missing. A removal takes a seq that no message has, and an import keeps the seqs of
// a file whose lines may have been rejected: of a gap that an import may have made, the tokens of the log tell.
func (i *inspection) gaps() {
	w := &i.log
	imported := w.total == i.audit.TotalTokens
	for _, gap := range w.gaps {
		first := int64(0) // of the missing ones
		for seq := gap.First; seq <= gap.Last+1; seq++ {
			legal := seq > gap.Last || w.removals[seq] || imported && seq <= i.audit.GapSeq
			switch {
			case !legal && first == 0:
				first = seq
			case legal && first > 0:
				i.missing(session.MessagesRef{First: first, Last: seq - 1})
				first = 0
			}
		}
	}
}

func (i *inspection) missing(gap session.MessagesRef) {
	f := Finding{Kind: Missing, Seq: gap.First}
	if gap.Last > gap.First {
		f.LastSeq = gap.Last
	}
	i.add(f, "the log has %d messages fewer than the session counts, and no removal took their seqs",
		gap.Last-gap.First+1)
}

// findWanted takes a message's results off the list of the refs that are looked for.
func (i *inspection) findWanted(m *postgres.AuditedMessage, found *wire.Facts) {
	wanted := i.wanted[m.Seq]
	if wanted == nil {
		return
	}
	for part := range partsOf(i.audit.Format, m, found) {
		if wanted = slices.DeleteFunc(wanted, func(w wantedRef) bool {
			return w.ref == part.ref.String() && (w.sum == nil || *w.sum == part.sum)
		}); len(wanted) == 0 {
			delete(i.wanted, m.Seq)
			return
		}
	}
	i.wanted[m.Seq] = wanted
}

// dropMentioned takes the refs off the list that a message of the log has in its text: a summary names the source of a
// copy as the copy's tool said it, and nobody promised that it exists.
func (i *inspection) dropMentioned(body []byte) {
	for seq, refs := range i.wanted {
		refs = slices.DeleteFunc(refs, func(w wantedRef) bool {
			return w.sum == nil && bytes.Contains(body, []byte(w.ref))
		})
		if i.wanted[seq] = refs; len(refs) == 0 {
			delete(i.wanted, seq)
		}
	}
}
