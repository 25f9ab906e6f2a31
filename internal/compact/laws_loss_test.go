package compact

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// addsUp: the manifest is the difference, it names every part that has changed and no other, and the tokens are those
// that a fresh look at the bytes finds.
func (l *trial) addsUp() {
	for _, o := range l.all() {
		l.manifestAddsUp(o)
		l.partsAddUp(o)
	}
	l.namesEveryPart(l.whole)
}

func (l *trial) manifestAddsUp(o outcome) {
	saved, before, rest, looked := int64(0), int64(0), int64(0), int64(0)
	for _, a := range o.plan.Actions {
		saved += int64(a.TokensBefore - a.TokensAfter)
	}
	for _, e := range o.in.Tail {
		before += int64(e.Tokens)
		if e.Seq > o.made.Through {
			rest += int64(e.Tokens)
		}
	}
	if o.in.Base != nil {
		before += o.in.Base.Tokens
	}
	for _, m := range o.view {
		looked += int64(m.found.Tokens)
	}
	got := []int64{o.plan.Before, o.plan.After, o.plan.Before - o.plan.After, o.made.Tokens}
	if diff := cmp.Diff([]int64{before, looked + rest, saved, looked}, got); diff != "" {
		l.Errorf("before, after, saved, tokens of the checkpoint (-counted +said):\n%s", diff)
	}
	stages := int64(0)
	for _, report := range o.plan.Stages {
		stages += report.TokensSaved
	}
	if stages != saved {
		l.Errorf("the stages saved %d tokens, the actions %d", stages, saved)
	}
}

// partsAddUp: the list of all parts is the manifest, and what stays.
func (l *trial) partsAddUp(o outcome) {
	actions, once := map[Action]int{}, map[[2]int64]bool{}
	for _, a := range o.plan.Actions {
		actions[a]++
	}
	for _, a := range o.plan.Parts() {
		if id := [2]int64{a.Seq, int64(a.Part)}; once[id] {
			l.Errorf("part %v is listed twice", id)
		} else {
			once[id] = true
		}
		a.Decision = "" // only the list has these
		a.SHA256 = ""
		a.SHA256After = ""
		if actions[a]--; actions[a] < 0 && (a.TokensBefore != a.TokensAfter || a.Reason == "") {
			l.Errorf("the list has %+v, the manifest has not", a)
		}
	}
	for a, n := range actions {
		if n > 0 {
			l.Errorf("the manifest has %+v, the list has not", a)
		}
	}
}

// namesEveryPart holds for a compaction from the log.
func (l *trial) namesEveryPart(o outcome) {
	type outcome struct {
		seq          int64
		part         int
		do           ActionKind
		tool         string
		before, left int
	}
	said, seen := map[outcome]bool{}, map[outcome]bool{}
	for _, a := range o.plan.Actions {
		if a.Part >= 0 {
			said[outcome{a.Seq, a.Part, a.Kind, a.Tool, a.TokensBefore, a.TokensAfter}] = true
		}
	}
	for _, m := range o.view {
		for i := range m.parts {
			if p := &m.parts[i]; p.action != Keep {
				seen[outcome{m.seq, p.index, p.action, p.tool, l.original(m, *p).Tokens, l.now(m, p.index)}] = true
			}
		}
	}
	if diff := cmp.Diff(seen, said, cmp.AllowUnexported(outcome{})); diff != "" {
		l.Errorf("parts that have changed (-seen +said):\n%s", diff)
	}
}

// now returns how many tokens a part has in the view.
func (l *trial) now(m shownMessage, index int) int {
	for _, p := range m.found.Parts {
		if p.Index+l.in.Tail[m.place].Part == index {
			return p.Tokens
		}
	}
	l.Errorf("part %d is not in message %d any more", index, m.seq)
	return 0
}

// neverGrows: neither a part nor a view becomes larger, in bytes or in tokens.
func (l *trial) neverGrows() {
	for _, o := range l.all() {
		for _, a := range o.plan.Actions {
			// From one checkpoint to the next, fewer bytes may have as many tokens. For an answer there was room.
			if strings.HasSuffix(a.Reason, "is there") && float64(o.plan.After) <= o.in.Policy.Trigger*float64(o.in.WindowTokens) {
				continue
			}
			if a.TokensAfter > a.TokensBefore || a.TokensAfter == a.TokensBefore && o.in.Base == nil {
				l.Errorf("saves nothing: %+v", a)
			}
		}
		for _, m := range o.view {
			bytes, tokens := l.stoodFor(m)
			if m.found.Tokens > tokens || !m.coversOthers() && len(m.body) > bytes {
				l.Errorf("message %d has %d bytes and %d tokens in the place of %d and %d", m.seq, len(m.body), m.found.Tokens, bytes, tokens)
			}
		}
	}
}

// stoodFor returns how large the messages of the log are that a message replaces.
func (l *trial) stoodFor(m shownMessage) (bytes, tokens int) {
	if !m.coversOthers() {
		return len(l.in.Tail[m.place].Body), l.in.Tail[m.place].Tokens
	}
	for _, e := range l.in.Tail[l.count(m.from-1):l.count(m.to)] {
		bytes, tokens = bytes+len(e.Body), tokens+e.Tokens
	}
	return bytes, tokens
}

// recoverable: what is not shown any more is read from the log by the range that a summary or a notice has; what was
// shortened was persisted once, byte by byte, under the ref that stands in its place.
func (l *trial) recoverable() {
	for _, chain := range l.chains() {
		persisted, named := map[session.ResultRef][]byte{}, true
		for _, o := range chain {
			named = named && o.in.Policy.Wording == policy.Default().Wording // other wordings need not name the ref, or do it otherwise
			for _, r := range o.plan.Results {
				if r.SHA256 != sha256.Sum256(r.Stored) || persisted[r.Ref] != nil {
					l.Errorf("%s is persisted twice, or with another sum", r.Ref)
				}
				persisted[r.Ref] = r.Stored
			}
			l.hasRanges(o)
			l.evictedResults(o, persisted)
			for _, m := range o.view {
				for i := range m.parts {
					if p := &m.parts[i]; p.action != Keep {
						l.hasRef(m, p, persisted, named)
					}
				}
			}
		}
	}
	shortened := 0
	for _, m := range l.whole.view {
		for i := range m.parts {
			if p := &m.parts[i]; p.action != Keep && p.kind != prose {
				shortened++
			}
		}
	}
	evicted := l.evictedResults(l.whole, nil)
	if len(l.whole.plan.Results) != shortened+evicted {
		l.Errorf("%d parts are persisted, %d are shortened, %d evicted", len(l.whole.plan.Results), shortened, evicted)
	}
}

// evictedResults: every result of a message that is no longer shown was persisted, byte by byte, and can be read back by
// the ref that its place and its content have. It returns how many there are.
func (l *trial) evictedResults(o outcome, persisted map[session.ResultRef][]byte) (count int) {
	shown := o.units()
	for i, e := range l.in.Tail {
		if _, ok := shown[i]; ok || e.Seq > o.made.Through {
			continue
		}
		found, err := wire.Inspect(l.in.Format, e.Body)
		if err != nil {
			l.Fatal(err)
		}
		for _, p := range found.Parts {
			if p.Kind != wire.Result || p.Value == (wire.Span{}) {
				continue
			}
			count++
			content := wire.ResultText(l.in.Format, e.Body, p)
			ref := session.NewResultRef(e.Seq, p.Index+e.Part, sha256.Sum256(content.Stored))
			if persisted != nil && !bytes.Equal(persisted[ref], content.Stored) {
				l.Errorf("%s was evicted and is not persisted", ref)
			}
		}
	}
	return count
}

// hasRanges: every message of the log is shown or within the range of one that stands for others. An entry about a range
// is partial if later steps of its last message are shown.
func (l *trial) hasRanges(o outcome) {
	shown := o.units()
	for _, a := range o.plan.Actions {
		later := slices.ContainsFunc(o.view, func(m shownMessage) bool {
			return m.place >= 0 && m.seq == a.LastSeq && l.in.Tail[m.place].Part > 0
		})
		if a.Part < 0 && a.Partial != later {
			l.Errorf("partial %t, shown %t: %+v", a.Partial, later, a)
		}
	}
	for i := range l.count(o.made.Through) {
		seq := l.in.Tail[i].Seq
		if _, ok := shown[i]; ok {
			continue
		}
		within := false
		for _, m := range o.view {
			within = within || m.coversOthers() && m.from <= seq && seq <= m.to
		}
		if !within {
			l.Errorf("message %d has left without a trace", seq)
		}
	}
}

func (l *trial) hasRef(m shownMessage, p *part, persisted map[session.ResultRef][]byte, named bool) {
	if p.kind == prose {
		if name := "read_result " + (session.MessagesRef{First: m.seq, Last: m.seq}).String(); named && !bytes.Contains(said(m, p), []byte(name)) {
			l.Errorf("%s does not name %s: %s", at(m.seq, *p), name, said(m, p))
		}
		return // the log has it
	}
	ref := session.NewResultRef(m.seq, p.index, p.sum)
	stored, ok := persisted[ref]
	if want := wire.ResultText(l.in.Format, l.in.Tail[m.place].Body, l.original(m, *p)); !ok || !bytes.Equal(stored, want.Stored) {
		l.Errorf("%s: %s brings other bytes back than it had", at(m.seq, *p), ref)
	}
	name := []byte("read_result " + ref.String())
	switch {
	case p.action == Omit:
		name, named = []byte(ref.String()), true
	case p.source != "":
		name = []byte(p.source) // its own ref has its bytes, the line names the original
	}
	if named && p.action != CollapseSpace && !bytes.Contains(said(m, p), name) {
		l.Errorf("%s does not name %s: %s", at(m.seq, *p), ref, said(m, p))
	}
}

// said returns what the view has of a part.
func said(m shownMessage, p *part) []byte {
	value := p.value.Of(m.body)
	if len(value) == 0 || value[0] != '"' {
		return value
	}
	decoded, _ := rawjson.Unquote(nil, value)
	return decoded
}

// bounded: a line is no longer than the least that head and tail may keep, head and tail no longer than the policy
// wants, a summary no longer than it was ordered.
func (l *trial) bounded() {
	for _, o := range append([]outcome{l.whole}, l.steps...) {
		for _, m := range o.view {
			for i := range m.segments {
				g := &m.segments[i]
				text := said(m, &part{value: m.found.Parts[0].Value})[g.text.start:g.text.end]
				if n, limit := tokens.Estimate(text), o.in.Policy.Summarise.MaxTokens; n > limit {
					l.Errorf("a summary of %d tokens where %d are allowed: %s", n, limit, text)
				}
			}
			for i := range m.parts {
				l.partBounded(m, &m.parts[i], &o.in)
			}
		}
	}
}

func (l *trial) partBounded(m shownMessage, p *part, in *Input) {
	limits := &in.Policy
	marker := 100 + max(len(limits.Wording.Cap), len(limits.Wording.Bookend)) // characters of the line between head and tail
	chars, limit := text.Len(said(m, p)), 0
	switch p.action {
	case Cap:
		limit = max(limits.Cap.HeadChars+limits.Cap.TailChars, policy.MaxLineBytes, int(8*limits.Cap.UnitRatio*float64(in.WindowTokens))) + marker
	case Bookend:
		limit = max(2*limits.Trim.BookendMaxChars, policy.MaxLineBytes) + marker
		if p.stage == "hard" || p.stage == "summarise" {
			limit += p.head + p.tail
		}
	case Stub, Placeholder, Blank:
		limit = policy.MaxLineBytes
	default:
		return
	}
	if chars > limit {
		l.Errorf("%s has %d characters where %d are allowed", at(m.seq, *p), chars, limit)
	}
}
