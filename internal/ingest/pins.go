package ingest

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// ErrNothingToPin reports that a ref names no text of the session's log.
var ErrNothingToPin = errors.New("there is nothing to pin under this ref")

// Pinned reads what a ref pins, the text of the log, and the message that has it.
//
// Errors: ErrNotFound if there is no such session, ErrNothingToPin.
func Pinned(
	ctx context.Context, store *postgres.Store, at session.Address, ref session.PinRef,
) (p session.Pin, m session.Message, err error) {
	_, found, err := store.Messages(ctx, at, postgres.Range{After: ref.Seq - 1, To: ref.Seq, Limit: 1})
	if err != nil {
		return p, m, err
	}
	if len(found) == 0 {
		return p, m, ErrNothingToPin
	}
	m = found[0]
	facts, err := wire.Inspect(m.Format, m.Body)
	if err != nil {
		return p, m, err
	}
	text, ok := pin.TextOf(m.Format, m.Body, &facts, ref.Part)
	if !ok || ref.Check != "" && !isResult(&m, &facts, ref) {
		return p, m, ErrNothingToPin
	}
	p = session.Pin{Ref: ref.Text, Seq: ref.Seq, Text: text, Tokens: tokens.Estimate([]byte(text))}
	if ref.Part != session.WholeMessage {
		p.Part = &ref.Part
	}
	return p, m, nil
}

// isResult reports whether a ref with a check names a result of a message.
func isResult(m *session.Message, facts *wire.Facts, ref session.PinRef) bool {
	for i := range facts.Parts {
		p := &facts.Parts[i]
		if p.Index == ref.Part && p.Kind == wire.Result {
			sum := sha256.Sum256(wire.ResultText(m.Format, m.Body, *p).Stored)
			return session.NewResultRef(ref.Seq, ref.Part, sum).Check == ref.Check
		}
	}
	return false
}
