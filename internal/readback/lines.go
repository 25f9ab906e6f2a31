package readback

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// How much one answer has: its max_bytes bound its Content, before it becomes JSON.
const (
	DefaultBytes  = 32 << 10  // about 8,000 tokens
	MaxAgentBytes = 100 << 10 // about 25,000 tokens
	MaxBytes      = 1 << 20   // for programs
	MinBytes      = 64        // a line number and a character
)

// The lines that a page has.
const (
	DefaultLines = 200
	MaxLines     = 2000
)

// LinesWanted says which lines to read. Zero fields mean the defaults.
type LinesWanted struct {
	Offset     int64 // the first line, from 1
	Limit      int64 // how many lines
	CharOffset int64 // the number of characters of the first line to skip
	Chars      int64 // the number of characters of a window of the one line
	MaxBytes   int   // of Content
	Plain      bool  // no line numbers: the pages, joined, are the text
}

func (w *LinesWanted) check() error {
	if w.Offset == 0 {
		w.Offset = 1
	}
	if w.Limit == 0 {
		w.Limit = DefaultLines
	}
	for _, field := range []bound{
		{"offset", w.Offset, 1, math.MaxInt64}, {"limit", w.Limit, 1, MaxLines},
		{"char_offset", w.CharOffset, 0, math.MaxInt64}, {"chars", w.Chars, 0, MaxBytes},
	} {
		if err := field.check(); err != nil {
			return err
		}
	}
	if w.Chars > 0 {
		w.Limit = 1
	}
	return checkBytes(&w.MaxBytes)
}

// Want says what to bring along when the result is opened.
func (w *LinesWanted) Want() persist.Want {
	first := max(w.Offset, 1)
	limit := w.Limit
	if limit < 1 || limit > MaxLines {
		limit = DefaultLines
	}
	return persist.Want{FromLine: first, LastLine: first + limit - 1}
}

// bound is a number of a request with what it may be.
type bound struct {
	name                   string
	given, lowest, highest int64
}

func (b bound) check() error {
	switch {
	case b.given >= b.lowest && b.given <= b.highest:
		return nil
	case b.highest == math.MaxInt64:
		return session.Invalid(b.name, invalidRequest, "must be a whole number from %d on, not %d", b.lowest, b.given)
	}
	return session.Invalid(b.name, invalidRequest, "must be a whole number from %d to %d, not %d", b.lowest, b.highest,
		b.given)
}

// invalidRequest is the code of what is wrong with a request.
const invalidRequest = "invalid_request"

func checkBytes(given *int) error {
	if *given == 0 {
		*given = DefaultBytes
	}
	return bound{"max_bytes", int64(*given), MinBytes, MaxBytes}.check()
}

// Lines returns a page of lines. It ends before a line that has no room in max_bytes, or inside the first line if that
// alone is too long: NextOffset and NextCharOffset are where to go on. An offset behind the end is said in Note.
func Lines(ctx context.Context, of *persist.Content, want LinesWanted) (*protocol.LinePage, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	p := &linePage{LinesWanted: want, r: newReader(of)}
	p.LinePage = protocol.LinePage{
		Offset: want.Offset, CharOffset: want.CharOffset, Limit: want.Limit,
		TotalLines: of.Lines(), TotalBytes: of.Size(),
	}
	if want.Offset > max(of.Lines(), 1) {
		p.Note = fmt.Sprintf("offset %d is beyond the end: there are %d lines; the last %d begin at offset %d",
			want.Offset, of.Lines(), min(want.Limit, of.Lines()), max(of.Lines()-want.Limit, 0)+1)
		return &p.LinePage, nil
	}
	at, err := p.begin(ctx)
	if err != nil || p.Note != "" {
		return &p.LinePage, err
	}
	if err := p.fill(ctx, at); err != nil {
		return nil, err
	}
	return &p.LinePage, p.measure(ctx, at)
}

// linePage is a page that is being made.
type linePage struct {
	LinesWanted
	protocol.LinePage
	r *reader
}

// begin returns the byte where the page begins.
func (p *linePage) begin(ctx context.Context) (at int64, err error) {
	if at, err = p.r.lineStart(ctx, p.LinesWanted.Offset); err != nil || p.LinesWanted.CharOffset == 0 {
		return at, err
	}
	wanted := p.LinesWanted.CharOffset
	to, skipped, err := p.r.skip(ctx, at, wanted, maxSkip)
	switch {
	case err != nil:
		return 0, err
	case skipped < wanted && to-at >= maxSkip:
		return 0, session.Invalid("char_offset", invalidRequest, "%d is too deep in a line: characters are counted in "+
			"its first %d bytes; read the bytes from %d on instead", wanted, maxSkip, to)
	case skipped < wanted:
		p.LineChars = &skipped
		p.Note = fmt.Sprintf("char_offset %d is beyond the end of line %d, which has %d characters", wanted,
			p.LinesWanted.Offset, skipped)
	}
	return to, nil
}

// maxSkip is how many bytes of a line are looked through for a character: a fifth of a second.
const maxSkip = 64 << 20

// fill writes the lines from byte at on.
func (p *linePage) fill(ctx context.Context, at int64) error {
	text, err := p.text(ctx, at)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	defer func() { p.show(page.Bytes()) }()
	line := p.LinesWanted.Offset
	for ; line < p.LinesWanted.Offset+p.LinesWanted.Limit && line <= p.TotalLines; line++ {
		number := p.number(line)
		room := p.LinesWanted.MaxBytes - page.Len() - len(number)
		next, rest := cutLine(text)
		first := line == p.LinesWanted.Offset
		if len(next) > room && !first {
			p.goOn(line, 0)
			p.Truncated = true
			return nil
		}
		page.WriteString(number)
		piece := p.window(wholeChars(next, room), first)
		page.Write(piece)
		if len(piece) < len(next) {
			if charsOf(piece) == 0 {
				return session.Invalid("offset", invalidRequest, "line %d is no text: read its bytes", line)
			}
			p.goOn(line, p.LinesWanted.CharOffset+charsOf(piece))
			p.Truncated = len(piece) == len(wholeChars(next, room))
			return nil
		}
		text = rest
	}
	if line <= p.TotalLines {
		p.goOn(line, 0)
	}
	return nil
}

// text returns the bytes from byte at on, as many as the page may have: not those of the next chunk if the lines of
// this one are enough.
func (p *linePage) text(ctx context.Context, at int64) ([]byte, error) {
	limit := p.LinesWanted.MaxBytes + maxChar
	text, err := p.r.from(ctx, at)
	if err == nil && len(text) < limit && int64(bytes.Count(text, []byte{'\n'})) < p.LinesWanted.Limit {
		return p.r.read(ctx, at, limit)
	}
	return text[:min(len(text), limit)], err
}

// show sets the content of the page.
func (p *linePage) show(content []byte) {
	if p.Content = string(content); !utf8.Valid(content) {
		p.Note = notUTF8
	}
}

const notUTF8 = "this is not UTF-8: what is no text is shown as U+FFFD; read the bytes for what it is exactly"

// maxChar is how many bytes a character has at most.
const maxChar = 4

// cutLine returns the first line of a text, with its end.
func cutLine(text []byte) (line, rest []byte) {
	if end := bytes.IndexByte(text, '\n') + 1; end > 0 {
		return text[:end], text[end:]
	}
	return text, nil
}

func ended(line []byte) bool { return bytes.HasSuffix(line, []byte{'\n'}) }

// window cuts a piece of the first line to the characters that were asked for; the line feed is none of them.
func (p *linePage) window(piece []byte, first bool) []byte {
	if p.Chars == 0 || !first {
		return piece
	}
	end, _ := skipChars(bytes.TrimSuffix(piece, []byte{'\n'}), p.Chars)
	if ended(piece) && end == len(piece)-1 {
		end++
	}
	return piece[:end]
}

func (p *linePage) number(line int64) string {
	if p.Plain {
		return ""
	}
	return fmt.Sprintf("%6d\t", line)
}

func (p *linePage) goOn(line, char int64) { p.NextOffset, p.NextCharOffset = &line, char }

// measure counts the characters of the line of a window, if its end is near.
func (p *linePage) measure(ctx context.Context, at int64) error {
	if p.Chars == 0 {
		return nil
	}
	end, chars, err := p.r.skip(ctx, at, math.MaxInt64, maxMeasure)
	if err == nil && end-at < maxMeasure {
		chars += p.LinesWanted.CharOffset
		p.LineChars = &chars
	}
	return err
}

// maxMeasure is how many bytes behind a window its line is measured.
const maxMeasure = 8 << 20
