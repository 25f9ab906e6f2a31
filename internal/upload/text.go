package upload

import (
	"context"
	"fmt"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// finish makes an upload whose bytes are stored a result, with the text that the session's policy makes of it.
func finish(ctx context.Context, s store, at session.Address, u Upload) (Upload, error) {
	of, err := s.Session(ctx, at)
	if err != nil {
		return u, err
	}
	own, err := policy.Parse(of.Policy.Document)
	if err != nil {
		return u, fmt.Errorf("policy of session %s: %w", at.ID, err)
	}
	content, err := s.OpenBody(ctx, u.Session, u.Body)
	if err != nil {
		return u, err
	}
	counted, err := count(ctx, content)
	if err != nil {
		return u, err
	}
	sum := content.SHA256()
	made := compact.Uploaded{
		Upload: compact.Upload{Ref: session.NewUploadRef(u.N, sum).String(), CallID: u.CallID},
		Tool:   u.Tool, MediaType: u.MediaType, Bytes: content.Size(), Chars: counted.chars, Tokens: counted.tokens,
	}
	if made.Head, made.Tail, err = edges(ctx, content); err != nil {
		return u, err
	}
	text, mark, err := made.TextOf(&own, of.WindowTokens)
	if err != nil {
		return u, err
	}
	var shown []byte // of a text that is all of the result nothing needs to be known
	if mark != "" {
		digest := compact.DigestOf([]byte(text))
		shown = digest[:]
	}
	return s.finish(ctx, u, persist.Result{
		Ref: made.Ref, Category: string(own.Trim.Categories[u.Tool]), Bytes: content.Size(), Lines: content.Lines(),
		Tokens: counted.tokens, SHA256: sum[:],
	}, text, shown)
}

// edges returns the first and the last bytes of a content: all of it, as head, if it is small.
func edges(ctx context.Context, c *persist.Content) (head, tail []byte, err error) {
	if head, err = c.Between(ctx, 0, compact.UploadEdge); err != nil {
		return nil, nil, err
	}
	tail, err = c.Between(ctx, max(c.Size()-compact.UploadEdge, compact.UploadEdge), c.Size())
	return head, tail, err
}

// counts are the sizes of a content that nothing else knows.
type counts struct{ chars, tokens int64 }

// countedChunks is how many chunks are counted: of a content that has more, chunks at equal distances stand for all.
const countedChunks = 256

func count(ctx context.Context, c *persist.Content) (sum counts, err error) {
	all := len(c.Index())
	every := (all + countedChunks - 1) / countedChunks
	counted := int64(0)
	for i := 0; i < all; i += every {
		chunk, err := c.Chunk(ctx, i)
		if err != nil {
			return sum, err
		}
		sum.chars += chars(chunk)
		sum.tokens += int64(tokens.Estimate(chunk))
		counted += int64(len(chunk))
	}
	if counted > 0 && counted < c.Size() {
		share := float64(c.Size()) / float64(counted)
		sum.chars, sum.tokens = int64(float64(sum.chars)*share), int64(float64(sum.tokens)*share)
	}
	return sum, nil
}

// chars counts characters as the policy's limits do, in UTF-16 units, wherever the bytes are cut.
func chars(b []byte) (n int64) {
	for _, c := range b {
		if c&0xC0 != 0x80 {
			n++
		}
		if c >= 0xF0 {
			n++
		}
	}
	return n
}
