package wire

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// FastValidator goes through the facts of a view, and knows at its end whether the view can be read in its own format as the bytes
// that are stored. It takes no JSON. It may say no to a view that needs no repair, never yes to one that does: Render
// then finds out.
type FastValidator struct {
	format   session.Format
	provider *provider.Facts // of format
	state    validatorState
	used     []byte          // sorted hashes of the ids of calls in the checkpoint, eight bytes each
	newer    map[string]bool // ids of calls after it
	open     []string        // calls without a result
	custom   map[string]bool // ids of calls of custom tools after the checkpoint
}

// walkState is what a FastValidator is at, besides the calls.
type validatorState struct {
	invalid  bool
	begun    bool // something but the pinned head was said
	idle     bool // the last item is reasoning that its provider takes back with another one only
	unsigned bool // the first call of a step since the last message of the user has no signature
	last     side
}

// side is what the last message was.
type side uint8

const (
	userSide side = iota
	assistantSide
	answerSide
	mixedSide // results, and something behind them
)

// NewWalk begins at the first message of a view.
func NewFastValidator(f session.Format) *FastValidator {
	return &FastValidator{format: f, provider: provider.Of(f)}
}

// Add goes on to the next message.
func (w *FastValidator) Add(f *MessageShape) {
	switch {
	case w.state.invalid:
	case w.state.idle && f.Role != "assistant":
		w.state.invalid = true
	case f.Format != w.format || f.Flags&(FlagAssessed|FlagMayNeedRepair) != FlagAssessed:
		w.state.invalid = true
	case f.Flags&FlagPinned != 0 && !w.state.begun:
	case f.Flags&FlagPinned != 0:
		w.state.invalid = w.provider.SeparateSystem || len(w.open) > 0
		w.state.last = userSide
	case f.Role == "assistant" || f.Role == "model":
		w.assistant(f)
	case len(f.Answers) > 0 || f.Role == "tool" || f.Role == "function":
		w.answers(f)
	default:
		w.state.invalid = len(w.open) > 0
		w.state.last, w.state.unsigned = userSide, false
	}
	w.state.begun = w.state.begun || f.Flags&FlagPinned == 0
}

func (w *FastValidator) assistant(f *MessageShape) {
	s := &w.state
	running := s.begun && s.last == assistantSide
	switch {
	case !s.begun && w.provider.SeparateSystem,
		running && w.format == session.Gemini,
		running && f.Flags&FlagReasoning != 0 && len(w.open) > 0 && w.format == session.Anthropic,
		len(w.open) > 0 && !(running && (w.format == session.Anthropic || w.format == session.OpenAIResponses)):
		s.invalid = true
		return
	}
	s.last = assistantSide
	s.idle = w.format == session.OpenAIResponses && f.Flags&FlagReasoning != 0
	s.unsigned = s.unsigned || f.Flags&FlagUnsigned != 0
	for _, id := range f.Calls {
		s.invalid = s.invalid || w.takes(id)
		w.open = append(w.open, id)
		if f.Flags&FlagCustom != 0 {
			if w.custom == nil {
				w.custom = map[string]bool{}
			}
			w.custom[id] = true
		}
	}
	for _, id := range f.Answers { // of an AI SDK message
		s.invalid = s.invalid || !w.answer(id)
	}
}

// takes notes an id, and reports whether it was taken where ids have to be unique.
func (w *FastValidator) takes(id string) bool {
	if !w.provider.IDUnique {
		return false
	}
	if w.newer[id] || w.has(hashOf(id)) {
		return true
	}
	if w.newer == nil {
		w.newer = map[string]bool{}
	}
	w.newer[id] = true
	return false
}

func (w *FastValidator) answers(f *MessageShape) {
	s := &w.state
	if s.last == userSide || s.last == mixedSide || !s.begun || s.last == answerSide && w.format == session.Gemini || len(f.Answers) == 0 {
		s.invalid = true
		return
	}
	s.last = answerSide
	for _, id := range f.Answers {
		s.invalid = s.invalid || !w.answer(id) || w.custom[id] != (f.Flags&FlagCustom != 0)
	}
	if f.Flags&FlagMixed != 0 {
		s.last = mixedSide
		s.invalid = s.invalid || len(w.open) > 0 || w.format == session.Gemini
	}
	if w.format == session.Gemini && len(w.open) > 0 {
		s.invalid = true // as many results as calls, in one message
	}
}

func (w *FastValidator) answer(id string) bool {
	for i := len(w.open) - 1; i >= 0; i-- {
		if w.open[i] == id {
			w.open = slices.Delete(w.open, i, i+1)
			return true
		}
	}
	return false
}

// Sound reports whether the view that was walked is valid for a model ("" for not known) as it is stored.
func (w *FastValidator) Valid(model string) bool {
	s := &w.state
	atRest := s.begun && s.last == assistantSide && len(w.open) == 0
	switch {
	case s.invalid:
		return false
	case w.format == session.Gemini:
		return !atRest && (!s.unsigned || olderGemini(model))
	case w.format == session.Anthropic:
		return !atRest || !RefusesPrefill(model)
	case w.format == session.OpenAIChat:
		return !mistral(model)
	}
	return !s.idle
}

// State is what ResumeWalk needs to go on from here.
func (w *FastValidator) State() []byte {
	s := w.state
	if s.invalid || slices.ContainsFunc(w.open, func(id string) bool { return w.custom[id] }) {
		return []byte{1} // of a call that is open, only its id is kept
	}
	flags := byte(s.last) << 4
	for i, set := range []bool{s.invalid, s.begun, s.unsigned, s.idle} {
		if set {
			flags |= 1 << i
		}
	}
	hashes := make([]uint64, 0, len(w.newer))
	for id := range w.newer {
		hashes = append(hashes, hashOf(id))
	}
	for used := w.used; len(used) > 0; used = used[8:] {
		hashes = append(hashes, binary.BigEndian.Uint64(used))
	}
	slices.Sort(hashes)
	out := []byte{flags}
	for _, h := range hashes {
		out = binary.BigEndian.AppendUint64(out, h)
	}
	return out
}

// AddShapes goes on with messages whose facts are as the database joins them: one after another with ASCII 30 between
// them, each of fields that ASCII 31 ends (the format's number, the flags, the role, the ids of the calls and of the
// answers, which ASCII 29 separates).
func (w *FastValidator) AddShapes(facts []byte) {
	for len(facts) > 0 && !w.state.invalid {
		var one []byte
		one, facts, _ = bytes.Cut(facts, []byte{30})
		fact, ok := parseShape(string(one))
		w.state.invalid = !ok
		w.Add(&fact)
	}
}

func parseShape(text string) (f MessageShape, ok bool) {
	var fields [5]string
	for i := range fields {
		if fields[i], text, ok = strings.Cut(text, "\x1f"); !ok {
			return f, false
		}
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < 1 || number > len(session.Formats()) {
		return f, false
	}
	flags, err := strconv.Atoi(fields[1])
	f = MessageShape{Format: session.Formats()[number-1], Flags: Flags(flags), Role: fields[2]}
	f.Calls, f.Answers = idList(fields[3]), idList(fields[4])
	return f, err == nil && text == ""
}

func idList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x1d")
}

// ResumeWalk goes on behind a checkpoint: state is what State said there, and open the ids of the calls that it leaves
// open, separated by ASCII 29. Without a state nothing is known.
func ResumeFastValidator(f session.Format, state, open []byte) *FastValidator {
	w := &FastValidator{format: f, provider: provider.Of(f), open: idList(string(open))}
	if len(state)%8 != 1 {
		w.state.invalid = true
		return w
	}
	flags := state[0]
	w.state = validatorState{invalid: flags&1 != 0, begun: flags&2 != 0, unsigned: flags&4 != 0, idle: flags&8 != 0, last: side(flags >> 4)}
	w.used = state[1:]
	return w
}

// has reports whether a hash is among those of the checkpoint.
func (w *FastValidator) has(hash uint64) bool {
	n := len(w.used) / 8
	i := sort.Search(n, func(i int) bool { return binary.BigEndian.Uint64(w.used[8*i:]) >= hash })
	return i < n && binary.BigEndian.Uint64(w.used[8*i:]) == hash
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}
