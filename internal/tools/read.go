package tools

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// piece is the structured answer of read_result and get_messages.
type piece struct {
	Ref        string  `json:"ref"`
	Content    string  `json:"content"`
	Encoding   string  `json:"encoding"`
	FirstLine  int64   `json:"first_line,omitempty"`
	LastLine   int64   `json:"last_line,omitempty"`
	CharOffset int64   `json:"char_offset,omitempty"`
	ByteOffset *int64  `json:"byte_offset,omitempty"`
	Bytes      int     `json:"bytes"`
	TotalLines int64   `json:"total_lines"`
	TotalBytes int64   `json:"total_bytes"`
	SHA256     string  `json:"sha256"`
	Text       bool    `json:"text,omitempty"`
	Images     int     `json:"images,omitempty"`
	Pointer    *string `json:"pointer,omitempty"`
	ValueType  string  `json:"value_type,omitempty"`
	Next       object  `json:"next"`
	note       string
	nextName   string // the argument of Next that the first line names
	images     []Image
	numbered   bool
}

// reading is a call that reads a piece of what a ref names.
type reading struct {
	*Runner
	arguments
	from *readback.Source
	of   *persist.Content
	text bool // of is a text that is not what was stored
}

// readResult runs read_result.
func (r *Runner) readResult(ctx context.Context, with arguments) (*Answer, error) {
	for _, rule := range []struct {
		name, because string
		others        []string
	}{
		{"byte_offset", "it reads by bytes", []string{"offset", "limit", "char_offset", "chars", "pointer",
			"line_numbers"}},
		{"pointer", "it returns one value", []string{"offset", "limit", "char_offset", "chars", "bytes",
			"line_numbers"}},
		{"chars", "it is a window of one line", []string{"limit"}},
	} {
		if err := with.exclude(rule.name, rule.because, rule.others...); err != nil {
			return nil, err
		}
	}
	if with.has("bytes") && !with.has("byte_offset") {
		return nil, wrong("bytes", "goes with byte_offset: send byte_offset 0 to read from the beginning")
	}
	from, err := readback.OpenAt(ctx, r.Store, r.At, with.text("ref"), with.first())
	if err != nil {
		return nil, err
	}
	return r.read(ctx, ReadResult, from, with)
}

// first says what to bring along of the result that a call reads.
func (a arguments) first() persist.Want {
	if a.has("byte_offset") {
		bytes := readback.BytesWanted{Offset: a.number("byte_offset"), Bytes: a.number("bytes")}
		return bytes.Want()
	}
	lines := readback.LinesWanted{Offset: a.number("offset"), Limit: a.number("limit")}
	return lines.Want()
}

// messages runs get_messages.
func (r *Runner) messages(ctx context.Context, with arguments) (*Answer, error) {
	if err := with.exclude("ref", "it names the messages", "from_seq", "to_seq"); err != nil {
		return nil, err
	}
	first, last := with.number("from_seq"), with.number("to_seq")
	switch {
	case with.has("ref"):
		ref, ok := session.ParseMessagesRef(with.text("ref"))
		if !ok {
			return nil, wrong("ref", "%q is no ref of messages, such as m17 or m17-42; for a result call %s",
				with.text("ref"), callOf(ReadResult, object{"ref": with.text("ref")}))
		}
		first, last = ref.First, ref.Last
	case first == 0:
		return nil, wrong("from_seq", "is missing: send from_seq and to_seq, or a ref such as m17-42")
	case last == 0:
		last = first
	case last < first:
		return nil, wrong("to_seq", "%d is before from_seq %d: the first message comes first", last, first)
	}
	from, err := readback.Open(ctx, r.Store, r.At, session.MessagesRef{First: first, Last: last}.String())
	if err != nil {
		return nil, err
	}
	return r.read(ctx, GetMessages, from, with)
}

func (r *Runner) read(ctx context.Context, tool string, from *readback.Source, with arguments) (*Answer, error) {
	c := reading{Runner: r, arguments: with, from: from, of: from.Stored}
	if !with.flag("raw") && !with.has("pointer") && !with.has("byte_offset") || from.Run != nil && !with.flag("raw") {
		of, err := from.Text(ctx)
		if err != nil {
			return nil, err
		}
		c.of, c.text = of, of.SHA256() != from.Stored.SHA256()
	}
	made, err := c.piece(ctx)
	if err != nil {
		return nil, err
	}
	if made.note != "" && made.Content == "" && len(made.images) == 0 && made.TotalBytes > 0 {
		return nil, wrong(beyond(with), "%s", strings.TrimPrefix(made.note, "offset "))
	}
	return made.answer(tool), nil
}

// beyond names the argument that led behind the end.
func beyond(with arguments) string {
	for _, name := range []string{"byte_offset", "char_offset"} {
		if with.has(name) {
			return name
		}
	}
	return "offset"
}

// piece reads by a pointer, by bytes or by lines.
func (c *reading) piece(ctx context.Context) (made *piece, err error) {
	sum := c.of.SHA256()
	base := piece{
		Ref: c.from.Ref, Encoding: "utf-8", TotalLines: c.of.Lines(), TotalBytes: c.of.Size(), Text: c.text,
		SHA256: hex.EncodeToString(sum[:]),
	}
	switch {
	case c.has("pointer"):
		return c.value(ctx, base)
	case c.has("byte_offset"):
		return c.byteRange(ctx, base)
	}
	return c.lines(ctx, base)
}

func (c *reading) maxBytes() int { return int(c.number("max_bytes")) }

func (c *reading) lines(ctx context.Context, p piece) (*piece, error) {
	want := readback.LinesWanted{
		Offset: c.number("offset"), Limit: c.number("limit"), CharOffset: c.number("char_offset"),
		Chars: c.number("chars"), MaxBytes: c.maxBytes(), Plain: !c.flag("line_numbers"),
	}
	if want.Limit == 0 {
		want.Limit = readback.MaxLines
	}
	page, err := readback.Lines(ctx, c.of, want)
	if err != nil {
		return nil, err
	}
	p.setLines(page)
	p.numbered = !want.Plain
	if p.Next != nil && c.number("chars") > 0 {
		p.Next["chars"] = c.number("chars")
	}
	c.carry(p.Next, "limit", "max_bytes", "line_numbers", "raw")
	if c.from.Run != nil && p.Next == nil && c.from.Run.Next != (session.MessagesRef{}) {
		next := c.from.Run.Next.String()
		p.Next, p.nextName = object{"ref": next}, "ref "+next
	}
	if first := max(want.Offset, 1); first == 1 && want.CharOffset == 0 && !c.flag("raw") && c.from.Result != nil {
		if p.images, err = c.imagesOf(ctx); err != nil {
			return nil, err
		}
		p.Images = len(p.images)
	}
	return &p, nil
}

// setLines takes a page of lines over.
func (p *piece) setLines(page *protocol.LinePage) {
	p.Content, p.Bytes = page.Content, len(page.Content)
	p.FirstLine, p.LastLine = page.Offset, page.TotalLines
	p.CharOffset, p.note = page.CharOffset, page.Note
	if page.NextOffset == nil {
		p.LastLine = max(p.LastLine, p.FirstLine)
		return
	}
	p.Next = object{"ref": p.Ref, "offset": *page.NextOffset}
	p.nextName = fmt.Sprintf("offset %d", *page.NextOffset)
	if p.LastLine = *page.NextOffset - 1; page.NextCharOffset > 0 {
		p.LastLine = *page.NextOffset
		p.Next["char_offset"] = page.NextCharOffset
		p.nextName += fmt.Sprintf(" char_offset %d", page.NextCharOffset)
	}
}

// carry gives the call that reads on the arguments of this one.
func (c *reading) carry(next object, names ...string) {
	for _, name := range names {
		if next != nil && c.has(name) {
			next[name] = c.arguments[name]
		}
	}
}

func (c *reading) byteRange(ctx context.Context, p piece) (*piece, error) {
	found, err := readback.Bytes(ctx, c.of, readback.BytesWanted{
		Offset: c.number("byte_offset"), Bytes: c.number("bytes"), MaxBytes: c.maxBytes()})
	if err != nil {
		return nil, err
	}
	p.Content, p.Encoding = found.Content, found.Encoding
	p.Bytes, p.note = found.Bytes, found.Note
	p.ByteOffset = &found.Offset
	p.goOn(found.NextOffset)
	c.carry(p.Next, "bytes", "max_bytes", "raw")
	return &p, nil
}

func (p *piece) goOn(offset *int64) {
	if offset != nil {
		p.Next = object{"ref": p.Ref, "byte_offset": *offset}
		p.nextName = fmt.Sprintf("byte_offset %d", *offset)
	}
}

// value returns the value that a pointer names, or the image that it is.
func (c *reading) value(ctx context.Context, p piece) (*piece, error) {
	if c.from.Run != nil {
		return nil, wrong("pointer", "is for results that are JSON, and %s are messages: leave it out", c.from.Ref)
	}
	pointer := c.arguments.text("pointer")
	found, err := readback.Pointer(ctx, c.of, pointer, c.maxBytes())
	if err != nil {
		return nil, err
	}
	p.Content, p.Bytes = found.Content, found.Bytes
	p.Pointer, p.ValueType = &pointer, found.Type
	p.ByteOffset = &found.Offset
	p.goOn(found.NextOffset)
	if found.NextOffset != nil && found.Bytes > 0 {
		if image, err := c.imageAt(ctx, pointer); err != nil || image != nil {
			return p.asImage(image), err
		}
	}
	return &p, nil
}

// answer frames a piece as data: what it is, the piece, how to read on.
func (p *piece) answer(tool string) *Answer {
	var out strings.Builder
	out.WriteString(p.passage().String() + "\n" + p.Content)
	if p.Content != "" && !strings.HasSuffix(p.Content, "\n") {
		out.WriteByte('\n')
	}
	if p.note != "" {
		out.WriteString("[Note: " + p.note + "]\n")
	}
	if len(p.images) > 0 {
		fmt.Fprintf(&out, "[%d images of the result follow]\n", len(p.images))
	}
	if p.Next != nil {
		out.WriteString(readOn(tool, p.Next))
	} else {
		out.WriteString("[End of " + p.Ref + "]")
	}
	return &Answer{Text: out.String(), Structured: p, Images: p.images, Refs: []string{p.Ref}}
}

func (p *piece) passage() session.Passage {
	passage := session.Passage{
		Ref: p.Ref, Text: p.Text, TotalLines: p.TotalLines, Bytes: int64(p.Bytes), TotalBytes: p.TotalBytes,
		SHA256: p.SHA256, Next: p.nextName, Base64: p.Encoding == "base64", Numbered: p.numbered,
	}
	if p.ByteOffset != nil {
		passage.Offset = *p.ByteOffset
		return passage
	}
	passage.First, passage.Last = p.FirstLine, p.LastLine
	passage.CharOffset = p.CharOffset
	return passage
}
