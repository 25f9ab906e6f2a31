package readback

import (
	"bytes"
	"context"
	"fmt"

	"github.com/varve-dev/varve/internal/protocol"
)

// groups writes the matches in one content, with the lines around them.
type groups struct {
	*grep
	ref   string
	r     *reader
	group *protocol.MatchGroup // the last
	shown int64                // the last line that is in it
	text  []byte               // its content
}

// The bytes of a line that are shown, and how many of them come before the match.
const (
	shownBytes  = 400
	shownBefore = 100
)

// write adds what was found, as far as max_bytes has room.
func (w *groups) write(ctx context.Context) error {
	for i := range w.found {
		m := &w.found[i]
		until := w.r.of.Lines() + 1
		switch {
		case i+1 < len(w.found):
			until = w.found[i+1].line
		case w.stopped != "":
			until = w.next.line
		}
		fits, err := w.add(ctx, m, until)
		if err != nil {
			return err
		}
		if !fits {
			w.stopped, w.next = byBytes, m.place
			break
		}
	}
	w.close()
	return nil
}

// add adds a match with the lines around it that are before line until. It reports false if there is no room; the first
// match of an answer is always there.
func (w *groups) add(ctx context.Context, m *match, until int64) (fits bool, err error) {
	from := max(m.line-int64(w.Before), 1)
	joined := w.group != nil && from <= w.shown+1
	if joined {
		from = w.shown + 1
	}
	before, err := w.lines(ctx, from, m.line)
	if err != nil {
		return false, err
	}
	line, err := w.match(ctx, m)
	if err != nil {
		return false, err
	}
	to := min(m.line+int64(w.After)+1, until, w.r.of.Lines()+1)
	after, err := w.lines(ctx, m.line+1, to)
	if err != nil {
		return false, err
	}
	text := bytes.Join([][]byte{before, line, after}, nil)
	if w.written+len(text) > w.MaxBytes {
		if w.Matches.Matches > 0 {
			return false, nil
		}
		text = wholeChars(line, w.MaxBytes)
		from, to = m.line, m.line+1
	}
	if !joined {
		w.open(from)
	}
	w.text = append(w.text, text...)
	w.written += len(text)
	w.shown = max(m.line, to-1)
	w.group.Matches = append(w.group.Matches, protocol.Match{Line: m.line, CharOffset: m.char})
	w.Matches.Matches++
	return true, nil
}

// open begins a group.
func (w *groups) open(line int64) {
	w.close()
	w.Groups = append(w.Groups, protocol.MatchGroup{Ref: w.ref, Line: line})
	w.group = &w.Groups[len(w.Groups)-1]
}

// close ends the group.
func (w *groups) close() {
	if w.group != nil {
		w.group.Content = string(w.text)
		w.text = w.text[:0]
	}
}

// lines returns the lines from one to before another, each shortened at its end.
func (w *groups) lines(ctx context.Context, from, to int64) (text []byte, err error) {
	if from >= to {
		return nil, nil
	}
	at, err := w.r.lineStart(ctx, from)
	for line := from; line < to && err == nil; line++ {
		var piece []byte
		if piece, err = w.r.read(ctx, at, shownBytes+maxChar); err != nil {
			return nil, err
		}
		next, _ := cutLine(piece)
		text = fmt.Appendf(text, "%6d-", line)
		text = appendShown(text, next, false)
		at += int64(len(next))
		if !ended(next) && line+1 < to {
			at, err = w.r.lineStart(ctx, line+1)
		}
	}
	return text, err
}

// match returns the line of a match, shortened around it.
func (w *groups) match(ctx context.Context, m *match) ([]byte, error) {
	begin := m.from - shownBefore
	if m.place.char == 0 && m.from-m.at < shownBytes/2 {
		begin = m.at
	}
	piece, err := w.r.read(ctx, begin, shownBytes+2*maxChar)
	if err != nil {
		return nil, err
	}
	inside := begin > m.at || m.place.char > 0
	for inside && len(piece) > 0 && continues(piece[0]) {
		piece = piece[1:]
	}
	line, _ := cutLine(piece)
	return appendShown(fmt.Appendf(nil, "%6d:", m.line), line, inside), nil
}

// appendShown appends the beginning of a line, or of what is inside it, and marks what is left out.
func appendShown(dst, line []byte, inside bool) []byte {
	if inside {
		dst = append(dst, "…"...)
	}
	shown := wholeChars(line, shownBytes)
	dst = append(dst, shown...)
	if len(shown) < len(line) {
		dst = append(dst, "…"...)
	}
	if !ended(shown) {
		dst = append(dst, '\n')
	}
	return dst
}
