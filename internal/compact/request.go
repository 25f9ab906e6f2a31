package compact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// asked returns a request as the policy words it, without what is to be summarised.
func (s *runState) asked() summary.Request {
	limits := &s.policy.Summarise
	r := summary.Request{
		Prompt: limits.Prompt, Directives: limits.Directives, Retain: limits.Retain,
		RetainPrompt: limits.RetainPrompt, RetainDirectives: limits.RetainDirectives, MaxTokens: s.segmentTokens(),
		MayGrow: !s.policy.OnlySmaller, WordsKept: limits.WordsRatio > 0 && limits.NamesRatio > 0,
	}
	if limits.Style != policy.Sections {
		r.Style = summary.Style(limits.Style)
	}
	return r
}

// emulates reports whether a model is asked as one of the five systems asks it, which sends each message as the view
// shows it. Varve's own request has head and tail of long results, as they were before this compaction.
func (s *runState) emulates() bool {
	return s.write != nil && s.policy.Summarise.Style != policy.Sections
}

// addContext adds the messages around those that are evicted, for the one style that sends them.
func (s *runState) addContext(r *summary.Request, d *eviction) error {
	if r.Style != summary.Codelia || s.write == nil {
		return nil
	}
	for m := range s.messages {
		if d.evicts(m) {
			continue
		}
		message, err := s.decode(m, true)
		if err != nil {
			return err
		}
		if m < d.begin {
			r.Lead = append(r.Lead, message)
		} else {
			r.Tail = append(r.Tail, message)
		}
	}
	return nil
}

// transcript returns evicted messages as the writer receives them, without those that have summaries.
func (s *runState) transcript(d *eviction) (messages []summary.Message, err error) {
	shown, read := s.shownFrom(d), int64(0)
	for m := range d.evicted() {
		if m < shown && s.silent(m) || len(s.messages[m].segments) > 0 || s.messages[m].seq <= read {
			continue
		}
		if left := s.leftOut(m); left != nil {
			messages, read = append(messages, left...), s.messages[m].to
			continue
		}
		message, err := s.decoded(m, m >= shown)
		if err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// mostLeftOut is how many messages that left the view without a summary are summarised later. They have no more tokens
// than a window, so that a model that fails is not asked for more and more.
const mostLeftOut = 1000

// leftOut returns the messages of the log that notice m stands for, because a model failed to summarise them, for the
// next summary to be of them: nil if message m is no notice, or if they are too many.
func (s *runState) leftOut(m int) []summary.Message {
	at := &s.messages[m]
	notice := at.coversOthers() && len(at.segments) == 0
	if s.write == nil || s.older == nil || !notice || at.coverage.messages > mostLeftOut {
		return nil
	}
	list, err := s.older(at.from, at.to)
	if err != nil {
		s.failure = errors.Join(s.failure, err)
		return nil
	}
	size := 0
	for _, message := range list {
		for _, p := range message.Parts {
			size += len(p.Text) / charsPerToken
		}
	}
	if float64(size) > s.window {
		return nil
	}
	return list
}

// shownParts is how many of the newest calls and results the writer receives: a summary has no room for more.
const shownParts = 512

// shownFrom returns the first message of an eviction whose calls and results the writer receives.
func (s *runState) shownFrom(d *eviction) int {
	shown := 0
	if s.emulates() {
		return d.begin
	}
	for m := d.end - 1; m >= d.begin; m-- {
		if shown += max(s.messages[m].calls, s.messages[m].last-s.messages[m].first); shown > shownParts {
			return m + 1
		}
	}
	return d.begin
}

// silent reports whether message m only answers calls.
func (s *runState) silent(m int) bool {
	at := &s.messages[m]
	return at.role == other && at.last > at.first && !at.coversOthers()
}

// decoded returns message m as the view has it, with its calls and results or without. Extract, which may write several
// times, is given what was read the first time.
func (s *runState) decoded(m int, whole bool) (summary.Message, error) {
	if s.write != nil {
		return s.decode(m, whole)
	}
	key := decodedMessage{m, whole}
	message, known := s.messagesRead[key]
	if known {
		return message, nil
	}
	message, err := s.decode(m, whole)
	if err == nil {
		s.messagesRead[key] = message
	}
	return message, err
}

// decodedMessage names what was read of a message.
type decodedMessage struct {
	message int
	whole   bool
}

func (s *runState) decode(m int, whole bool) (summary.Message, error) {
	at, body := &s.messages[m], s.body(m)
	found, err := s.found(m)
	if err != nil {
		return summary.Message{}, fmt.Errorf("compact: message %d: %w", at.seq, err)
	}
	message := summary.Message{
		Seq: at.seq, Role: found.Role, Summary: at.coversOthers(), Parts: make([]summary.Part, 0, len(found.Parts)),
	}
	next := at.first
	for i := range found.Parts {
		p := &found.Parts[i]
		if !whole && (p.Kind == wire.Call || p.Kind == wire.Result) {
			continue
		}
		read := summary.Part{Kind: partKinds[p.Kind], Tool: p.Name, CallID: p.CallID, Failed: p.IsError}
		if read.Kind == summary.Other {
			read.Media, read.Bytes = mediaOf(p, p.Raw.Of(body))
		} else {
			read.Text = s.textOfPart(m, body, p)
		}
		for ; next < at.last && s.parts[next].value.Start <= p.Value.Start; next++ {
			if known := &s.parts[next]; known.value == p.Value {
				read.Tool = known.tool
				if s.emulates() && s.proposed[next].lowers(known) {
					read.Text = s.proposedText(next, read.Text)
				}
				if known.kind == result || known.kind == arguments && known.action != Keep {
					read.Ref = s.refOf(next).String()
				}
			}
		}
		message.Parts = append(message.Parts, read)
	}
	return message, nil
}

// proposedText returns the text of part i as the view will have it; text is what it has now.
func (s *runState) proposedText(i int, text string) string {
	made := s.makeDraft(i)
	if made.action == Keep {
		return text
	}
	value, lead, trail := s.appendDraft(nil, i, &made)
	return string(decoded(value[lead : len(value)-trail]))
}

// found returns the facts about message m, which it reads once.
func (h *history) found(m int) (*wire.Facts, error) {
	if m >= h.based && len(h.tail) > 0 {
		return &h.tail[m-h.based], nil
	}
	if found := h.facts[m]; found != nil {
		return found, nil
	}
	found, err := h.reader.Read(h.in.Format, h.body(m), h.messages[m].now)
	if err != nil {
		return nil, err
	}
	h.facts[m] = &found
	return &found, nil
}

var partKinds = map[wire.Kind]summary.PartKind{
	wire.Text: summary.Text, wire.Call: summary.Call, wire.Result: summary.Result, wire.Reasoning: summary.Reasoning,
}

// textOfPart returns the text of a part of message m that the writer receives: of a result that is read for other
// purposes, too, the same bytes.
func (s *runState) textOfPart(m int, body []byte, p *wire.Part) string {
	value := p.Value.Of(body)
	if p.Kind == wire.Result && len(value) > 0 && value[0] == '"' && !s.emulates() && len(value) <= wholeBytes {
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			if of := &s.parts[i]; of.kind == result && of.value == p.Value && of.action == Keep {
				return sharedText(s.content(i).Text)
			}
		}
	}
	return s.textOf(body, p)
}

// textOf returns the text of a part that the writer receives.
func (s *runState) textOf(body []byte, p *wire.Part) string {
	value := p.Value.Of(body)
	if p.Kind == wire.Result && !s.emulates() {
		if ends := endsOf(value); ends != nil {
			return sharedText(ends)
		}
	}
	switch {
	case len(value) > 0 && value[0] == '"':
		return textOfLiteral(value)
	case p.Kind == wire.Result:
		return s.resultText(body, p)
	}
	return string(value)
}

// textOfLiteral returns the text of a string literal: the bytes themselves, where none is escaped.
func textOfLiteral(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return sharedText(literal[1 : len(literal)-1])
	}
	text, _ := rawjson.Unquote(nil, literal)
	return sharedText(text)
}

// resultText returns a result that is no string. A model is told that it has more than texts.
func (s *runState) resultText(body []byte, p *wire.Part) string {
	content, value := wire.ResultText(s.in.Format, body, *p), p.Value.Of(body)
	if s.write == nil || content.OnlyText || len(value) == 0 || value[0] != '[' {
		return string(content.Text)
	}
	return fmt.Sprintf("%s\n[content that is no text, %d bytes]", content.Text, len(value)-len(content.Text))
}

// endBytes is how much the writer receives of a long result's beginning, and of its end.
const endBytes = 4096

// wholeBytes is how long the literal of a result may be that the writer receives whole.
const wholeBytes = 4 * endBytes

// endsOf decodes the beginning and the end of a long string literal. It returns nil for other values, and for a literal
// that has no place to cut.
func endsOf(literal []byte) []byte {
	if len(literal) <= wholeBytes || literal[0] != '"' {
		return nil
	}
	first, last := cutNear(literal, endBytes), cutNear(literal, len(literal)-endBytes)
	if first < 0 || last < 0 {
		return nil
	}
	quoted := append(append(append([]byte{}, literal[:first]...), `\n…\n`...), literal[last:]...)
	text, _ := rawjson.Unquote(make([]byte, 0, len(quoted)), quoted)
	return text
}

// cutNear returns a place at or after i where a literal can be cut, between characters and far from any escape, or -1.
func cutNear(literal []byte, i int) int {
	const (
		escape = 6
		search = 512
	)
	for end := i + search; i < min(end, len(literal)-1); i++ {
		if utf8.RuneStart(literal[i]) && bytes.IndexByte(literal[i-escape:i], '\\') < 0 {
			return i
		}
	}
	return -1
}

// mediaTypes are where formats have the type of what is no text.
var mediaTypes = regexp.MustCompile(
	`"(?:media_type|mimeType|mime_type|mediaType)"\s*:\s*"([\w.+/-]+)"|"data:([\w.+/-]+)[;,]`)

// mediaOf returns what a part is that is no text, and about how many bytes it has.
func mediaOf(p *wire.Part, raw []byte) (media string, bytes int) {
	const enough = 1024
	found := mediaTypes.FindSubmatch(raw[:min(len(raw), enough)])
	if found == nil {
		return p.Kind.String(), len(raw)
	}
	const encoded, decoded = 4, 3 // characters of base64, and the bytes that they are
	media = fmt.Sprintf("%s %s%s", p.Kind, found[1], found[2])
	return media, len(raw) / encoded * decoded
}

// transcribed reads messages of the log as the writer receives them.
func transcribed(ctx context.Context, in Input, first, last int64) ([]summary.Message, error) {
	entries, err := in.Older(first, last)
	if err != nil {
		return nil, err
	}
	h, err := readHistory(ctx, Input{
		Format: in.Format, Policy: in.Policy, WindowTokens: in.WindowTokens, Tail: entries,
	}, len(stages))
	if err != nil {
		return nil, err
	}
	s := newRunState(h)
	return s.transcript(&eviction{end: len(h.messages), kept: -1})
}
