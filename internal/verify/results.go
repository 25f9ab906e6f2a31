package verify

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// resultPage is how many results are listed at once.
const resultPage = 500

// readResults checks every persisted result with its body.
func (i *inspection) readResults(ctx context.Context) error {
	for after := (persist.Place{}); ; {
		page, err := i.audit.Results(ctx, after, resultPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		for r := range page {
			i.results[page[r].Ref] = true
			if err := i.result(ctx, &page[r]); err != nil {
				return err
			}
		}
		last := &page[len(page)-1]
		after = persist.Place{Seq: last.Seq, Part: last.Part}
	}
}

func (i *inspection) result(ctx context.Context, r *persist.Result) error {
	i.report.Results++
	at := Finding{Kind: Result, Ref: r.Ref, Seq: r.Seq}
	if want := session.NewResultRef(r.Seq, r.Part, [32]byte(r.SHA256)); want.String() != r.Ref {
		i.add(at, "its row says message %d, part %d and the digest %x: that is %s", r.Seq, r.Part, r.SHA256[:2], want)
		return nil
	}
	body, err := i.audit.ResultBody(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		i.add(at, "its body does not read: %v", err)
		return nil
	}
	i.report.Bytes += int64(len(body))
	sum := sha256.Sum256(body)
	switch {
	case !bytes.Equal(sum[:], r.SHA256):
		i.add(at, "its body has the SHA-256 %x instead of %x", sum, r.SHA256)
	case int64(len(body)) != r.Bytes:
		i.add(at, "its body has %d bytes instead of %d", len(body), r.Bytes)
	}
	return nil
}
