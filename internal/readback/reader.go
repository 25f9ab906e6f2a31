package readback

import (
	"bytes"
	"context"

	"github.com/varve-dev/varve/internal/persist"
)

// reader reads places of a content. It holds the chunks that it read last. A character is a byte that does not continue
// another one in UTF-8, with those that do: so a text that is not UTF-8 has characters, too, and they can be counted in
// pieces.
type reader struct {
	of   *persist.Content
	held [heldChunks]struct {
		body []byte
		i    int
	}
	turn int
}

// heldChunks is how many chunks a reader holds.
const heldChunks = 4

func newReader(of *persist.Content) *reader { return &reader{of: of} }

// chunk returns the bytes of chunk i.
func (r *reader) chunk(ctx context.Context, i int) ([]byte, error) {
	for _, h := range r.held {
		if h.i == i && h.body != nil {
			return h.body, nil
		}
	}
	body, err := r.of.Chunk(ctx, i)
	if err != nil {
		return nil, err
	}
	r.held[r.turn].i, r.held[r.turn].body = i, body
	r.turn = (r.turn + 1) % heldChunks
	return body, nil
}

// from returns the rest of the chunk that has byte at, nil behind the end.
func (r *reader) from(ctx context.Context, at int64) ([]byte, error) {
	if at >= r.of.Size() {
		return nil, nil
	}
	i := r.of.At(at)
	body, err := r.chunk(ctx, i)
	if err != nil {
		return nil, err
	}
	return body[at-r.of.Index()[i].At:], nil
}

// read returns up to n bytes from byte at on.
func (r *reader) read(ctx context.Context, at int64, n int) ([]byte, error) {
	first, err := r.from(ctx, at)
	if err != nil || len(first) >= n {
		return first[:min(n, len(first))], err
	}
	body := append(make([]byte, 0, min(int64(n), r.of.Size()-at)), first...)
	for len(first) > 0 && len(body) < n {
		if first, err = r.from(ctx, at+int64(len(body))); err != nil {
			return nil, err
		}
		body = append(body, first[:min(n-len(body), len(first))]...)
	}
	return body, nil
}

// lineStart returns where line n begins; it must exist.
func (r *reader) lineStart(ctx context.Context, n int64) (int64, error) {
	i := r.of.AtLine(n)
	body, err := r.chunk(ctx, i)
	if err != nil {
		return 0, err
	}
	chunk := r.of.Index()[i]
	at := 0
	for line := chunk.Line; line < n; line++ {
		at += bytes.IndexByte(body[at:], '\n') + 1
	}
	return chunk.At + int64(at), nil
}

// skip returns the byte that is n characters behind byte at, which is in some line, but not behind the end of that line
// nor limit bytes further. done is how many characters it is.
func (r *reader) skip(ctx context.Context, at, n, limit int64) (to, done int64, err error) {
	for to = at; to-at < limit; {
		body, err := r.from(ctx, to)
		if err != nil || len(body) == 0 {
			return to, done, err
		}
		end := bytes.IndexByte(body, '\n')
		if end < 0 {
			end = len(body)
		}
		skipped, chars := skipChars(body[:end], n-done)
		to += int64(skipped)
		done += chars
		if skipped < len(body) {
			return to, done, nil
		}
	}
	return to, done, nil
}

// skipChars returns how many bytes the first n characters of a text have, and how many characters these are.
func skipChars(text []byte, n int64) (skipped int, chars int64) {
	for i, b := range text {
		if !continues(b) {
			if chars == n {
				return i, chars
			}
			chars++
		}
	}
	return len(text), chars
}

// continues reports whether a byte belongs to the character of the byte before it.
func continues(b byte) bool { return b&0xC0 == 0x80 }

// charsOf counts the characters of a text.
func charsOf(text []byte) (n int64) {
	for _, b := range text {
		if !continues(b) {
			n++
		}
	}
	return n
}

// wholeChars returns the beginning of a text of at most n bytes that ends with a whole character. A text of nothing but
// bytes that continue a character is cut anywhere.
func wholeChars(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	end := n
	for end > 0 && continues(text[end]) {
		end--
	}
	if end == 0 {
		end = n
	}
	return text[:end]
}
