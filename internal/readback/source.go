package readback

import (
	"context"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Source is what a ref names, ready to be read.
type Source struct {
	Ref    string
	Result *persist.Result  // nil for messages
	Run    *Run             // nil for a result
	Stored *persist.Content // the bytes, exactly; of several messages a JSON array
	text   *persist.Content
}

// Open finds what a ref names: a result, a call's arguments, an upload, or messages. It reads no more of a persisted
// result than where its chunks are.
//
// Errors: ErrNotFound, with the nearest refs in its text: models miscopy. DamagedError.
func Open(ctx context.Context, store *postgres.Store, at session.Address, name string) (*Source, error) {
	return OpenAt(ctx, store, at, name, persist.Want{})
}

// OpenAt opens for a reader that knows what it reads first, which comes along.
func OpenAt(
	ctx context.Context, store *postgres.Store, at session.Address, name string, want persist.Want,
) (*Source, error) {
	if ref, ok := session.ParseMessagesRef(name); ok {
		run, err := Messages(ctx, store, at, ref)
		if err != nil {
			return nil, err
		}
		return &Source{
			Ref: run.Ref.String(), Run: run, Stored: persist.ContentOf(run.Stored), text: persist.ContentOf(run.Text),
		}, nil
	}
	ref, err := session.ParseResultRef(name)
	if err != nil {
		return nil, err
	}
	found, content, err := openResult(ctx, store, at, ref, want)
	if err != nil {
		return nil, err
	}
	return &Source{Ref: found.Ref, Result: &found, Stored: content}, nil
}

// Text returns what a person or a model reads: of messages a text under headings, of a result that is JSON blocks their
// texts, of any other result what was stored.
func (s *Source) Text(ctx context.Context) (*persist.Content, error) {
	if s.text == nil {
		s.text = s.Stored
		if isJSON(s.Result.MediaType) && s.Stored.Size() <= maxJSON {
			stored, err := s.Stored.All(ctx)
			if err != nil {
				return nil, err
			}
			if text, ok := readable(stored); ok {
				s.text = persist.ContentOf(text)
			}
		}
	}
	return s.text, nil
}

// Lines returns what is read by lines: the text of messages, and of a result what was stored, or its text if that is
// wanted.
func (s *Source) Lines(ctx context.Context, text bool) (*persist.Content, error) {
	if text || s.Run != nil {
		return s.Text(ctx)
	}
	return s.Stored, nil
}
