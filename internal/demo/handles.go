package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
	"github.com/varve-dev/varve/internal/wire"
)

// checkHandles looks for results that have left a view without a handle: each result of the files must be whole in its
// session's view, or the ref that follows from its place and its content must bring it back.
func (d *Demo) checkHandles(ctx context.Context) error {
	var total, left int
	for _, s := range d.sessions {
		shown, err := d.shownResults(ctx, s)
		if err != nil {
			return err
		}
		for i, m := range s.conv.Messages {
			results, err := resultsOf(s.conv.Format, m.Body, int64(i+1))
			if err != nil {
				return err
			}
			total += len(results)
			for _, r := range results {
				if shown[r.sum] {
					continue
				}
				left++
				if err := d.readByRef(ctx, s, r); err != nil {
					return fmt.Errorf("session %s: %s has left the view without a handle: %w", s.conv.ID, r.ref, err)
				}
			}
		}
	}
	fmt.Fprintf(d.Out, "  %s of %s have left the views, 0 without a ref that brings them back\n",
		terminal.Thousands(int64(left)), terminal.Count(total, "result"))
	return nil
}

// handle is a result, and the ref that brings it back.
type handle struct {
	ref session.ResultRef
	sum [32]byte
}

// resultsOf returns the results of message seq that have content.
func resultsOf(format session.Format, body []byte, seq int64) (list []handle, err error) {
	facts, err := wire.Inspect(format, body)
	if err != nil {
		return nil, err
	}
	for _, p := range facts.Parts {
		if content := wire.ResultText(format, body, p).Stored; p.Kind == wire.Result && len(content) > 0 {
			sum := sha256.Sum256(content)
			list = append(list, handle{session.NewResultRef(seq, p.Index, sum), sum})
		}
	}
	return list, nil
}

// shownResults returns the digests of the results that are whole in a session's view.
func (d *Demo) shownResults(ctx context.Context, s *shownSession) (map[[32]byte]bool, error) {
	view, err := client.ReadContext.Call(ctx, d.API, s.conv.ID)
	if err != nil {
		return nil, err
	}
	shown := map[[32]byte]bool{}
	for _, body := range view.Value.Messages {
		results, err := resultsOf(s.conv.Format, body, 0)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			shown[r.sum] = true
		}
	}
	return shown, nil
}

func (d *Demo) readByRef(ctx context.Context, s *shownSession, r handle) error {
	body, _, err := d.API.RawResult(ctx, s.conv.ID, r.ref.String())
	if err != nil {
		return err
	}
	defer body.Close()
	read, err := io.ReadAll(body)
	if err == nil && sha256.Sum256(read) != r.sum {
		err = fmt.Errorf("it brings back %d other bytes", len(read))
	}
	return err
}
