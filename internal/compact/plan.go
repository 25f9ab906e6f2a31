package compact

import (
	"bytes"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/wire"
)

// Plan is what one compaction does.
type Plan struct {
	Through int64         `json:"through"`       // the last seq that the checkpoint will cover
	Before  int64         `json:"tokens_before"` // of the view, results that were capped at ingest counted whole
	After   int64         `json:"tokens_after"`  // of the view with the untouched rest of the tail, overhead aside
	Kept    int64         `json:"kept_tokens"`   // of the beginning of the view that keeps its bytes
	Actions []Action      `json:"actions"`       // the sum of their savings is Before - After
	Results []Result      `json:"-"`             // the parts that leave the view for the first time
	Stages  []StageReport `json:"stages"`
	Pins    []Pin         `json:"-"` // what the checkpoint has verbatim
	Unheld  []Pin         `json:"-"` // what it should have: only a compaction from the log can bring it back
	Entered []int64       `json:"-"` // by stage: the message that first needed it, 0 for none
	Noted   bool          `json:"-"` // the checkpoint remembers something else of summaries, whether or not it has it

	// Segments are the summaries in the checkpoint, oldest first. For those whose digest is set a model was asked.
	Segments []Segment `json:"segments"`
	// Waiting are the digests of all requests whose answers the next compaction can take in, if models have answered:
	// those of segments that are due or failed, and that for messages which stay until then.
	Waiting []summary.Digest `json:"-"`

	state    *runState
	history  *history
	covered  int       // number of messages that the checkpoint will cover
	eviction *eviction // the messages that one message replaces, nil for none
	edits    []edit    // by position
	text     []byte    // the replacements, one after another

	earlier map[place]bool // what the plans that it continues have acted on
}

// edit replaces the value of a part by a range of Plan.text.
type edit struct {
	part  int
	start int
	end   int
	lead  int // bytes at its beginning that are not the text: some providers accept only objects
	trail int // the same at its end
}

// splices returns edits of one message as changes of its bytes.
func (p *Plan) splices(dst []wire.Edit, edits []edit) []wire.Edit {
	for _, e := range edits {
		dst = append(dst, wire.Edit{Span: p.history.parts[e.part].value, With: p.text[e.start:e.end]})
	}
	return dst
}

// Changed reports whether the plan changes a byte of the view, or what the next compaction must know.
func (p *Plan) Changed() bool { return len(p.Actions) > 0 || p.Noted }

// enter adds an action to the manifest and to its stage's report.
func (p *Plan) enter(a Action) {
	p.Actions = append(p.Actions, a)
	saved := int64(a.TokensBefore - a.TokensAfter)
	p.After -= saved
	for k := range p.Stages {
		if report := &p.Stages[k]; report.Stage == a.Stage {
			report.Actions++
			report.TokensSaved += saved
		}
	}
}

// keptTokens returns the tokens before the first message that changes.
func (p *Plan) keptTokens() (sum int64) {
	end := p.covered
	if len(p.edits) > 0 {
		end = p.history.parts[p.edits[0].part].message
	}
	if p.eviction != nil {
		end = min(end, p.eviction.begin)
	}
	if len(p.Actions) == 0 {
		end = len(p.history.messages)
	}
	for m := range end {
		sum += int64(p.history.messages[m].now)
	}
	return sum
}

// settle applies the proposals that move a part that is not evicted down the ladder and make the view smaller.
func (p *Plan) settle(s *runState) {
	p.history = s.history
	p.covered = s.through()
	for m := p.covered; m < len(s.messages); m++ { // a message that is not covered keeps what the view has of it
		s.messages[m].now = s.viewTokens(m)
	}
	for m := range s.messages {
		p.Before += int64(s.messages[m].now)
	}
	p.After = p.Before
	for m := range s.messages[:p.covered] {
		p.Through = max(p.Through, s.messages[m].through())
	}
	p.evict(s)
	for i := range s.parts {
		if m := s.parts[i].message; m < p.covered && !p.evicts(m) {
			p.apply(s, i)
		}
	}
	p.Kept = p.keptTokens()
	p.Segments = p.segmentsOf()
	p.Noted = s.noted || s.pending != s.awaited
	p.reportDue(s.pending)
	p.sortPins(s)
	p.Waiting = p.waitingFor(s.pending)
}

// evict plans the eviction that a stage decided, unless it would save nothing.
func (p *Plan) evict(s *runState) {
	d := s.eviction
	if d == nil {
		return
	}
	before := d.currentTokens(s.history)
	if s.policy.OnlySmaller && d.now >= before && len(d.taken) == 0 {
		return
	}
	p.eviction = d
	p.addEvicted(s)
	p.enter(Action{
		Seq: d.from, LastSeq: d.to, Part: -1, Partial: s.remains(d), Kind: d.action, Stage: d.stage,
		Rule: d.stage + ".enabled", Reason: d.reason(), TokensBefore: before, TokensAfter: d.now,
		BytesBefore: d.currentBytes(s.history), BytesAfter: len(d.body), Ref: d.ref(),
	})
}

// remains reports whether steps of the last message that is evicted stay in the view: of an earlier eviction the newest
// message of the user may be before them.
func (h *history) remains(d *eviction) bool {
	for m := d.begin; m < len(h.messages); m++ {
		if at := &h.messages[m]; at.continues && at.seq == d.to && !d.evicts(m) {
			return true
		}
	}
	return false
}

// addEvicted adds the results of the evicted messages that are whole in the view until now: they must be persisted like
// those that a stage replaces.
func (p *Plan) addEvicted(s *runState) {
	for i := range s.parts {
		at := &s.parts[i]
		if at.kind == result && at.action == Keep && at.valueBytes() > 0 && p.evicts(at.message) {
			content := s.content(i)
			p.Results = append(p.Results, s.resultOf(at, &replacement{sum: s.sumOf(i)}, content))
		}
	}
}

// evicts reports whether message m is evicted.
func (p *Plan) evicts(m int) bool { return p.eviction != nil && p.eviction.evicts(m) }

// viewTokens returns the tokens of what the view has of message m, where results may have been capped at ingest.
func (h *history) viewTokens(m int) int {
	if m >= h.based {
		if capped := h.in.Tail[m-h.based].ViewTokens; capped > 0 {
			return capped
		}
	}
	return h.messages[m].now
}

// lowers reports whether the proposal keeps less of a part than the view has of it.
func (w *proposal) lowers(p *part) bool {
	return w.action > p.action || w.action == Bookend && p.action == Bookend && w.bookend < p.head
}

// apply replaces part i as proposed. Whether a replacement is used depends on the original alone, so that it is the
// same whatever the view has of the part now; but one line takes the place of another only if it is shorter.
func (p *Plan) apply(s *runState, i int) {
	at := &s.parts[i]
	if !s.proposed[i].lowers(at) {
		return
	}
	made := s.makeDraft(i)
	if made.action == Keep {
		return
	}
	e := edit{part: i, start: len(p.text)}
	p.text, e.lead, e.trail = s.appendDraft(p.text, i, &made)
	e.end = len(p.text)
	same := bytes.Equal(p.text[e.start:], at.value.Of(s.body(at.message)))
	if longer := e.end-e.start >= at.valueBytes() || made.tokens > at.now; same || at.action >= Stub && longer {
		p.text = p.text[:e.start]
		return
	}
	if at.action == Keep && at.kind != prose { // the log has a message's text
		p.Results = append(p.Results, s.resultOf(at, &made.replacement, s.content(i)))
	}
	was := size{tokens: at.now, bytes: s.textBytes(i)}
	at.action, at.now = made.action, made.tokens
	at.replacement = made.replacement
	s.messages[at.message].now += made.tokens - was.tokens
	p.edits = append(p.edits, e)
	p.record(s, i, was)
}

// resultOf returns a part as it must be persisted before it leaves the view.
func (s *runState) resultOf(p *part, made *replacement, content *wire.Content) Result {
	r := Result{
		Ref:      s.ref(p, made),
		Seq:      p.seq,
		Part:     p.index,
		Tool:     p.tool,
		CallID:   p.callID,
		Category: string(s.policy.Trim.Categories[p.tool]),
		SHA256:   made.sum,
		Tokens:   p.tokens,
		Source:   p.source,
		Foreign:  p.foreign,
	}
	if !p.foreign {
		r.MediaType = content.MediaType
		r.Stored = content.Stored
		r.Lines = content.Lines()
	}
	return r
}
