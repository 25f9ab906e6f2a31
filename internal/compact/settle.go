package compact

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// settle carries out what the stages propose, where it moves a result down the ladder and makes the view smaller.
func settle(s *scene, entered []bool) *Plan {
	n := s.through()
	p := &Plan{history: s.history, covered: n, Actions: []Action{}, Stages: make([]StageReport, len(stages))}
	for i, stage := range stages {
		p.Stages[i] = StageReport{Stage: stage.name, Entered: entered[i]}
	}
	for m := range s.messages {
		p.Before += int64(s.messages[m].now)
	}
	p.After = p.Before
	if n > 0 {
		p.Through = s.messages[n-1].seq
	}
	for i := range s.results {
		if s.results[i].message < n && s.wants[i].below(&s.results[i]) {
			p.carryOut(s, i)
		}
	}
	return p
}

// below reports whether the proposal leaves less of a result than what stands in the view.
func (w *proposal) below(r *result) bool {
	return w.do > r.do || w.do == r.do && (w.head < r.head || w.tail < r.tail)
}

// carryOut replaces result i if that saves bytes and tokens.
func (p *Plan) carryOut(s *scene, i int) {
	r, want := &s.results[i], &s.wants[i]
	next, text := r.left, []byte(nil)
	if r.do == Keep {
		content := s.content(i)
		next, text = leave(content), content.Text
	}
	next.stage, next.head, next.tail = want.stage, want.head, want.tail
	if s.text = s.replacement(s.text[:0], i, &next, text); len(s.text) == 0 {
		return
	}
	start, tokens := len(p.text), wire.EstimateTokens(len(s.text))
	p.text = rawjson.Quote(p.text, s.text)
	// Below Keep tokens may stay the same: two bookends can differ by less than a token.
	if len(p.text)-start >= r.value.End-r.value.Start || tokens > r.now || tokens == r.now && r.do == Keep {
		p.text = p.text[:start]
		return
	}
	if r.do == Keep {
		p.Results = append(p.Results, s.leaving(i, &next))
	}
	before := r.now
	r.do, r.now, r.left = want.do, tokens, next
	s.messages[r.message].now += tokens - before
	p.edits = append(p.edits, edit{result: i, start: start, end: len(p.text)})
	p.record(s, i, before)
}

// leave is what has to be remembered of a result that is whole in the view until now.
func leave(content *wire.Content) left {
	return left{
		sum: sha256.Sum256(content.Stored), chars: charLen(content.Text), text: content.OnlyText, preview: preview(content.Text),
	}
}

// replacement appends what will stand in the place of result i, nothing if its proposal does not suit it. text is that
// of the whole result, or nil if that has left and its bookends stand in the view.
func (s *scene) replacement(dst []byte, i int, next *left, text []byte) []byte {
	r, want := &s.results[i], &s.wants[i]
	ref := s.ref(r, next)
	heads, tails := next.headBytes, next.tailBytes
	next.headBytes, next.tailBytes = 0, 0
	switch want.do {
	case Stub:
		return appendStub(dst, ref, want.newer)
	case Placeholder:
		return appendPlaceholder(dst, ref, r.tool, next.preview)
	case Clear:
		return appendClear(dst, ref)
	}
	if !next.text || next.chars <= want.head+want.tail {
		return dst
	}
	first, last := text, text
	if text == nil {
		s.unquoted, _ = rawjson.Unquote(s.unquoted[:0], r.value.Of(s.body(r.message)))
		first, last = s.unquoted[:heads], s.unquoted[len(s.unquoted)-tails:]
	}
	first, last = firstChars(first, want.head), lastChars(last, want.tail)
	next.headBytes, next.tailBytes = len(first), len(last)
	return appendBookends(dst, first, last, ref, next.chars, r.tokens)
}

// leaving is result i as it has to be persisted.
func (s *scene) leaving(i int, next *left) Result {
	r, content := &s.results[i], s.content(i)
	lines := bytes.Count(content.Stored, []byte{'\n'})
	if n := len(content.Stored); n > 0 && content.Stored[n-1] != '\n' {
		lines++
	}
	return Result{
		Ref: s.ref(r, next), Seq: s.messages[r.message].seq, Part: r.part, Tool: r.tool, CallID: r.callID,
		Category: string(s.policy.Trim.Categories[r.tool]), MediaType: content.MediaType, Stored: content.Stored, SHA256: next.sum,
		Lines: lines, Tokens: r.tokens,
	}
}

// record enters what was done to result i in the manifest.
func (p *Plan) record(s *scene, i, before int) {
	r, want := &s.results[i], &s.wants[i]
	p.Actions = append(p.Actions, Action{
		Seq: s.messages[r.message].seq, Part: r.part, Do: r.do, Stage: want.stage, Reason: want.reason(r),
		TokensBefore: before, TokensAfter: r.now, Ref: s.ref(r, &r.left).String(),
	})
	saved := int64(before - r.now)
	p.After -= saved
	for k := range p.Stages {
		if report := &p.Stages[k]; report.Stage == want.stage {
			report.Actions++
			report.TokensSaved += saved
		}
	}
}

func (w *proposal) reason(r *result) string {
	switch w.do {
	case Cap:
		return fmt.Sprintf("%d tokens in one result: %d characters of head and %d of tail stay", r.tokens, w.head, w.tail)
	case Stub:
		return fmt.Sprintf("message %d has a newer result of the same call", w.newer)
	case Bookend:
		return fmt.Sprintf("%d tokens came after it: %d characters of head and tail stay", w.distance, w.head)
	}
	return fmt.Sprintf("%d tokens came after it", w.distance)
}
