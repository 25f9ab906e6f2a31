// Package readback returns what left a view, by the refs that a view names: results and omitted arguments as they were
// persisted or, if they never left a view, from the log, and messages from the log.
//
// Start at Open: it finds what a ref names, and Lines, Bytes and Pointer read it. Grep looks for a pattern in what refs
// name, Search for words in a whole session. Every answer is bounded, says how much there is, and where to go on. A ref
// holds as long as its session, whatever the view shows.
package readback

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// openResult finds a result where it was persisted, or in the log, and brings along what is wanted of it.
func openResult(
	ctx context.Context, store *postgres.Store, at session.Address, ref session.ResultRef, want persist.Want,
) (persist.Result, *persist.Content, error) {
	found, content, err := store.OpenResultAt(ctx, at, ref, want)
	missing := errors.Is(err, session.ErrNotFound)
	if err != nil && !missing || content != nil {
		return found, content, err
	}
	var logged, named []Part
	if !ref.IsUpload() {
		if logged, named, err = partsAt(ctx, store, at, ref.Seq); err != nil {
			return found, nil, err
		}
	}
	for _, p := range slices.Concat(logged, named) {
		if p.Ref == ref.String() {
			if missing {
				found = p.result.Result
			}
			return found, persist.ContentOf(p.result.Body), nil
		}
	}
	if !missing {
		return found, nil, &session.DamagedError{What: "result " + ref.String(), Cause: errNotInLog}
	}
	near, err := nearest(ctx, store, at, ref, logged)
	if err != nil {
		return found, nil, err
	}
	return found, nil, fmt.Errorf("result %s: %w%s", ref, session.ErrNotFound, near)
}

var errNotInLog = errors.New("it is not in its message")

// Part is a result, or a call with its arguments, of a message of the log. Its ref brings back all of it.
type Part struct {
	Kind   wire.Kind // wire.Result or wire.Call
	CallID string
	Ref    string
	result persist.NewResult
}

// Parts returns the results and the calls' arguments of a message of the log, as a compaction would persist them. There
// are none of a message that does not exist.
func Parts(ctx context.Context, store *postgres.Store, at session.Address, seq int64) ([]Part, error) {
	list, _, err := partsAt(ctx, store, at, seq)
	return list, err
}

// partsAt returns what Parts does, and the parts under the names that they had before engine version 7.
func partsAt(
	ctx context.Context, store *postgres.Store, at session.Address, seq int64,
) (list, named []Part, err error) {
	of, messages, err := store.Messages(ctx, at, postgres.Range{After: seq - 1, To: seq, Limit: 1})
	if err != nil || len(messages) == 0 {
		return nil, nil, err
	}
	m := &messages[0]
	if list, err = partsOf(m.Format, m, [][]byte{m.Body}); err != nil || m.Format == of.Format {
		return list, nil, err
	}
	named, err = partsOf(of.Format, m, earlierForm(of.Format, m))
	return list, named, err
}

// partsOf returns the results and the calls' arguments of a message in a form that may have several bodies.
func partsOf(format session.Format, m *session.Message, bodies [][]byte) (list []Part, err error) {
	before := 0 // parts of the message in the bodies before
	for _, body := range bodies {
		facts, err := wire.Inspect(format, body)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", m.Seq, err)
		}
		for i := range facts.Parts {
			p := facts.Parts[i]
			p.Index += before
			if content := wire.ResultText(format, body, p); content.Stored != nil && isResult(&p) {
				r := resultOf(m, &p, &content)
				list = append(list, Part{Kind: p.Kind, CallID: p.CallID, Ref: r.Ref, result: r})
			}
		}
		before += max(len(facts.Parts), 1)
	}
	return list, nil
}

// ByRef returns the results and the calls' arguments of a message by their refs: what Open brings back of a result
// that lies in the log.
func ByRef(m *session.Message) (map[string]persist.NewResult, error) {
	parts, err := partsOf(m.Format, m, [][]byte{m.Body})
	found := make(map[string]persist.NewResult, len(parts))
	for _, p := range parts {
		found[p.Ref] = p.result
	}
	return found, err
}

func isResult(p *wire.Part) bool { return p.Kind == wire.Result || p.Kind == wire.Call }

// earlierForm returns a message of the log in the format of its session, in which it may be several. Engines before
// version 7 named the parts of a message of another format by their numbers there, and such names hold for ever.
func earlierForm(f session.Format, m *session.Message) (bodies [][]byte) {
	for _, t := range wire.TranslateMessage(f, wire.Stored{Format: m.Format, Body: m.Body, Seq: m.Seq}) {
		bodies = append(bodies, t.Body)
	}
	return bodies
}

func resultOf(m *session.Message, p *wire.Part, content *wire.Content) persist.NewResult {
	sum := sha256.Sum256(content.Stored)
	return persist.NewResult{
		Result: persist.Result{
			Ref: session.NewResultRef(m.Seq, p.Index, sum).String(), Seq: m.Seq, Part: p.Index, Tool: p.Name,
			CallID: p.CallID, MediaType: content.MediaType, Bytes: int64(len(content.Stored)),
			Lines: int64(content.Lines()), Tokens: int64(p.Tokens), SHA256: sum[:], CreatedAt: m.CreatedAt,
		},
		Body: content.Stored,
	}
}

// nearest names the refs that were probably meant: those of the same message, else the nearest in the session.
func nearest(
	ctx context.Context, store *postgres.Store, at session.Address, ref session.ResultRef, logged []Part,
) (string, error) {
	if len(logged) > 0 {
		refs := make([]string, 0, maxNear)
		for i := range logged[:min(len(logged), maxNear)] {
			refs = append(refs, logged[i].Ref)
		}
		return fmt.Sprintf("; message %d has %s", ref.Seq, strings.Join(refs, ", ")), nil
	}
	refs, err := store.NearestResults(ctx, at, ref.Seq, maxNear)
	if err != nil || len(refs) == 0 {
		return "", err
	}
	what := fmt.Sprintf("message %d has no result", ref.Seq)
	if ref.IsUpload() {
		what = "there is no such upload"
	}
	return fmt.Sprintf("; %s, the nearest are %s", what, strings.Join(refs, ", ")), nil
}

// maxNear is how many refs an error names.
const maxNear = 5
