package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/units"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// FastValidator goes over the shapes of a view's messages, without any JSON, and then knows whether the view can be
// read in its own format as the bytes that are stored. It may say no to a view that needs no repair, which Render
// then finds out, but never yes to one that does.
type FastValidator struct {
	format   session.Format
	provider *provider.Facts // of format
	state    validatorState
	messages int                  // after a pinned head that is separate
	limit    int                  // the smallest number of messages that a server takes; 0 for any number
	shown    int                  // messages that show something
	used     []byte               // sorted hashes of the ids of calls in the checkpoint, eight bytes each
	newer    map[string]Flags     // ids of calls after the checkpoint, if they are unique, with their forms
	open     units.Pairer[string] // ids of calls without a result
}

// validatorState is what a FastValidator knows of the messages so far, besides their calls.
type validatorState struct {
	invalid  bool
	begun    bool  // the pinned head is over
	idle     bool  // the last item is reasoning, which its provider only takes back together with the next one
	passed   bool  // Responses: an item of the assistant that is no call is behind calls that may be open
	names    Flags // Gemini: the names of the calls that wait, unknownNames if they are in the checkpoint
	unsigned bool  // the first call of a step since the last message of the user has no signature
	late     bool  // AI SDK: calls are behind another message of the assistant
	last     side
	plain    plainness
}

// unknownNames are no sum of names.
const unknownNames = Flags(-1)

// side is what the last message was.
type side uint8

const (
	userSide side = iota
	assistantSide
	answerSide
	mixedSide // results, and something after them
)

// NewFastValidator returns a FastValidator at the first message of a view.
func NewFastValidator(f session.Format) *FastValidator {
	v := &FastValidator{format: f, provider: provider.Of(f), limit: provider.ShortestList(f)}
	v.state.plain.common, v.state.plain.reasoned = true, true
	return v
}

// Add adds the next message.
func (v *FastValidator) Add(m *MessageShape) {
	s := &v.state
	pinned := m.Flags&FlagPinned != 0
	v.addPlain(m, pinned)
	if m.Flags&FlagImage != 0 {
		v.shown++
	}
	switch {
	case s.invalid:
	case s.idle && m.Role != "assistant":
		s.invalid = true
	case m.Format != v.format || m.Flags&(FlagAssessed|FlagMayNeedRepair) != FlagAssessed:
		s.invalid = true
	case pinned && !s.begun:
	case pinned:
		s.invalid = v.provider.SeparateSystem || v.open.Waiting() > 0
		s.last = userSide
	case v.format == session.OpenAIResponses && !v.isNewItem(m):
		s.invalid = true
	case m.Role == "assistant" || m.Role == "model":
		v.assistant(m)
	case len(m.Answers) > 0 || m.Role == "tool" || m.Role == "function":
		v.answers(m)
	default:
		s.invalid = v.open.Waiting() > 0
		s.last = userSide
		s.unsigned = false
	}
	s.begun = s.begun || !pinned
	if s.begun || !v.provider.SeparateSystem {
		v.messages++
	}
	s.invalid = s.invalid || v.provider.MaxMessages > 0 && v.messages > v.provider.MaxMessages
}

func (v *FastValidator) assistant(m *MessageShape) {
	s := &v.state
	if !v.mayContinue() {
		s.invalid = true
		return
	}
	s.late = s.late || v.format == session.AISDK && s.last == assistantSide && len(m.Calls) > 0
	s.last = assistantSide
	if v.format == session.OpenAIResponses {
		s.idle = m.Flags&FlagReasoning != 0
		s.passed = v.open.Waiting() > 0 && (s.passed || len(m.Calls) == 0)
	}
	s.unsigned = s.unsigned || m.Flags&FlagUnsigned != 0
	for _, id := range m.Calls {
		v.call(id, m.Flags.form())
	}
	if len(m.Calls) > 0 {
		s.names = m.Flags.names()
	}
	for _, id := range m.Answers { // of an AI SDK message
		s.invalid = s.invalid || !v.answer(id)
	}
}

// mayContinue reports whether a message of the assistant may follow the messages so far.
func (v *FastValidator) mayContinue() bool {
	if !v.state.begun {
		return !v.provider.FirstUser && v.open.Waiting() == 0
	}
	waiting := v.open.Waiting() > 0
	if v.state.last != assistantSide {
		return !waiting
	}
	switch v.format {
	case session.Gemini:
		return false // its contents would be joined
	case session.Anthropic, session.OpenAIResponses:
		return true
	}
	return !waiting
}

// call adds a call. Only Responses has forms that the shape tells, and there ids are unique.
func (v *FastValidator) call(id string, form Flags) {
	v.open.Call(id, "", id)
	if !v.provider.IDUnique || v.state.invalid {
		return
	}
	if _, taken := v.newer[id]; taken || v.wasUsed(hashOf(id)) {
		v.state.invalid = true
		return
	}
	v.use(id, form)
}

// isNewItem reports whether the id of an item is none of those before. Two ids may have one sum: then Render finds out,
// which is rare as long as a view has a few hundred items.
func (v *FastValidator) isNewItem(m *MessageShape) bool {
	sum := m.Flags.names()
	if sum == 0 {
		return true
	}
	kind := byte(m.Flags.form()>>formShift)<<3 | byte(len(m.Calls)) | byte(len(m.Answers))<<1
	if m.Flags&FlagReasoning != 0 {
		kind |= 1 << 2
	}
	key := string([]byte{itemKey, kind, byte(sum >> 8), byte(sum)})
	if _, taken := v.newer[key]; taken || v.wasUsed(hashOf(key)) {
		return false
	}
	v.use(key, 0)
	return true
}

// itemKey begins the keys of items, which no id of a call that a FastValidator looks at begins with.
const itemKey = 0x1c

func (v *FastValidator) use(key string, form Flags) {
	if v.newer == nil {
		v.newer = map[string]Flags{}
	}
	v.newer[key] = form
}

func (v *FastValidator) answers(m *MessageShape) {
	s := &v.state
	misplaced := !s.begun || s.last == userSide || s.last == mixedSide
	if misplaced || len(m.Answers) == 0 || v.format == session.Gemini && s.last == answerSide {
		s.invalid = true
		return
	}
	s.last = answerSide
	for _, id := range m.Answers {
		s.invalid = s.invalid || !v.answer(id) || v.newer[id] != m.Flags.form()
	}
	mixed := m.Flags&FlagMixed != 0
	if mixed {
		s.last = mixedSide
	}
	switch {
	case v.format == session.Gemini: // as many results as calls, in one message of nothing else
		others := m.Flags.names() != 0 && s.names != 0 && m.Flags.names() != s.names
		s.invalid = s.invalid || mixed || others || v.open.Waiting() > 0
	case mixed:
		s.invalid = s.invalid || v.open.Waiting() > 0
	}
}

// answer reports whether a result answers a call. It does not matter here which one of several with its id.
func (v *FastValidator) answer(id string) bool {
	call, ok := v.open.Answer(id, "")
	return ok && call == id // not one under an alias
}

// Valid reports whether a model ("" for not known) takes the view as it is stored.
func (v *FastValidator) Valid(model string) bool { return v.ValidFor(Options{Model: model}) }

// ValidFor reports whether the view is one that Render would not change for these options, which keep what is pending.
func (v *FastValidator) ValidFor(o Options) bool {
	server := o.server(v.format)
	headAlone := v.state.plain.headed && !v.state.begun && server.NeedsMore()
	return !headAlone && v.valid(o.Model) && v.suits(server, o.Model) && v.shows(&server.Media, o.Model)
}

// shows reports whether a server takes all that the messages show, each of which it was looked at by itself.
func (v *FastValidator) shows(server *provider.Media, model string) bool {
	limit := server.MaxImages(model)
	return v.shown == 0 || *server == v.provider.Media && (limit == 0 || v.shown*mediaOfMessage <= limit)
}

func (v *FastValidator) valid(model string) bool {
	s := &v.state
	atRest := s.begun && s.last == assistantSide && v.open.Waiting() == 0
	switch {
	case s.invalid:
		return false
	case v.provider.FirstUser && s.plain.headed && !s.begun: // nothing but the system prompt
		return false
	case v.format == session.Gemini:
		return !atRest && (!s.unsigned || provider.IsOlderGemini(model))
	case v.format == session.Anthropic:
		return !atRest || !provider.RefusesPrefill(model)
	}
	return !s.idle && !v.isPassed()
}

// isPassed reports whether the assistant may have gone on from calls that are open.
func (v *FastValidator) isPassed() bool { return v.state.passed && v.open.Waiting() > 0 }

// The first byte of a State: a bit for each of the bits, two for the side, one for a view that is common, and one for a
// view that shows something. Programs whose States had no second byte set the last bit for something else.
const (
	stateInvalid = 1
	stateSide    = 4 // how far the side is shifted
	stateCommon  = 1 << 6
	stateShows   = 1 << 7 // something is shown: at most mostShown messages do that
)

const mostShown = 12

// The second byte of a State is the generation of the rules that were looked at. A rule that FlagMayNeedRepair is
// about, and was not about in a release, needs the next one.
const (
	stateRules = 3
	stateHead  = 2 // how many bytes are before the hashes
)

// IsAssessed reports whether a State was made by this version of the rules. ResumeFastValidator takes any other state
// for that of an invalid view.
func IsAssessed(state []byte) bool { return len(state)%8 == stateHead && state[1] == stateRules }

func (s *validatorState) bits(f session.Format) [4]*bool {
	if f == session.OpenAIChat { // which has neither of the others
		return [...]*bool{&s.invalid, &s.begun, &s.plain.thought, &s.plain.unthought}
	}
	if f == session.AISDK {
		return [...]*bool{&s.invalid, &s.begun, &s.late, &s.idle}
	}
	if f == session.Anthropic {
		return [...]*bool{&s.invalid, &s.begun, &s.unsigned, &s.plain.reasoned}
	}
	return [...]*bool{&s.invalid, &s.begun, &s.unsigned, &s.idle}
}

// State returns what ResumeFastValidator needs to continue from here: a byte of flags, the generation of the rules,
// then the sorted hashes of the ids of calls. It is stored with checkpoints, so what was written once must stay
// readable.
func (v *FastValidator) State() []byte {
	s := v.state
	tooMany := v.limit > 0 && v.messages > v.limit/2 || v.shown > mostShown
	if s.invalid || tooMany || v.isPassed() || v.waitsForAForm() { // of a call that is open, only its id is kept
		return []byte{stateInvalid, stateRules}
	}
	flags := byte(s.last) << stateSide
	if s.plain.common {
		flags |= stateCommon
	}
	if v.shown > 0 {
		flags |= stateShows
	}
	for i, bit := range s.bits(v.format) {
		if *bit {
			flags |= 1 << i
		}
	}
	hashes := make([]uint64, 0, len(v.newer)+len(v.used)/8)
	for id := range v.newer {
		hashes = append(hashes, hashOf(id))
	}
	for used := v.used; len(used) > 0; used = used[8:] {
		hashes = append(hashes, binary.BigEndian.Uint64(used))
	}
	slices.Sort(hashes)
	out := []byte{flags, stateRules}
	for _, h := range hashes {
		out = binary.BigEndian.AppendUint64(out, h)
	}
	return out
}

// waitsForAForm reports whether a call is open that is not a function's.
func (v *FastValidator) waitsForAForm() bool {
	for id := range v.open.All() {
		if v.newer[id] != 0 {
			return true
		}
	}
	return false
}

// ResumeFastValidator continues after a checkpoint. state is what State returned there, and open holds the ids of the
// calls that the checkpoint leaves open, separated by ASCII 29. Without a state nothing is known, and the view is
// invalid.
func ResumeFastValidator(f session.Format, state, open []byte) *FastValidator {
	v := NewFastValidator(f)
	v.messages = v.limit / 2 // what State lets a checkpoint have at most
	for _, id := range idList(string(open)) {
		v.open.Call(id, "", id)
		v.state.names = unknownNames
	}
	if !IsAssessed(state) {
		v.state.invalid = true
		return v
	}
	v.state.last = side(state[0] >> stateSide & 3)
	v.state.plain = plainness{common: state[0]&stateCommon != 0, headed: true}
	if state[0]&stateShows != 0 {
		v.shown = mostShown
	}
	for i, bit := range v.state.bits(f) {
		*bit = state[0]>>i&1 == 1
	}
	v.used = state[stateHead:]
	return v
}

// wasUsed reports whether a hash is among those of the checkpoint.
func (v *FastValidator) wasUsed(hash uint64) bool {
	n := len(v.used) / 8
	i := sort.Search(n, func(i int) bool { return binary.BigEndian.Uint64(v.used[8*i:]) >= hash })
	return i < n && binary.BigEndian.Uint64(v.used[8*i:]) == hash
}

func hashOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

// AddShapes adds messages whose shapes are joined as ParseShapes reads them.
func (v *FastValidator) AddShapes(joined []byte) {
	for len(joined) > 0 && !v.state.invalid {
		shape, rest, err := nextShape(joined)
		v.state.invalid = err != nil || !shape.Flags.isAssessed()
		v.Add(&shape)
		joined = rest
	}
}

// ParseShapes reads shapes as the database joins them: one after another with ASCII 30 between them, each of fields
// that end with ASCII 31 (the format's number, the flags, the role, the ids of the calls and those of the answers,
// which ASCII 29 separates, and the sum of the message's bytes, which package postgres checks). Before them may be the
// seq and the tokens, each ended by ASCII 28. A message that was stored before shapes existed has only the format's
// number and is not assessed; one that was stored before sums existed has no sum.
func ParseShapes(joined []byte) (shapes []MessageShape, err error) {
	for len(joined) > 0 {
		shape, rest, err := nextShape(joined)
		if err != nil {
			return nil, fmt.Errorf("shape of message %d: %w", len(shapes), err)
		}
		shapes = append(shapes, shape)
		joined = rest
	}
	return shapes, nil
}

func nextShape(joined []byte) (shape MessageShape, rest []byte, err error) {
	one, rest, _ := bytes.Cut(joined, []byte{30})
	shape, err = parseShape(string(one))
	return shape, rest, err
}

func parseShape(text string) (m MessageShape, err error) {
	head, text, hasShape := strings.Cut(text, "\x1f")
	if at := strings.LastIndexByte(head, '\x1c'); at >= 0 {
		if _, err := fmt.Sscanf(head[:at], "%d\x1c%d", &m.Seq, &m.Tokens); err != nil {
			return m, err
		}
		head = head[at+1:]
	}
	number, err := strconv.Atoi(head)
	if err != nil {
		return m, err
	}
	if number < 1 || number > len(session.Formats()) {
		return m, fmt.Errorf("there is no format %d", number)
	}
	m.Format = session.Formats()[number-1]
	if !hasShape {
		return m, nil
	}
	var fields [4]string
	for i := range fields {
		var isEnded bool
		if fields[i], text, isEnded = strings.Cut(text, "\x1f"); !isEnded {
			return m, fmt.Errorf("%d fields after its format instead of %d", i, len(fields))
		}
	}
	if sum, behind, isEnded := strings.Cut(text, "\x1f"); behind != "" || sum != "" && !isEnded {
		return m, fmt.Errorf("%q is after its last field", text)
	}
	flags, err := strconv.Atoi(fields[0])
	m.Flags = Flags(flags)
	m.Role = fields[1]
	m.Calls = idList(fields[2])
	m.Answers = idList(fields[3])
	return m, err
}

func idList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x1d")
}

// MessageShape is what a FastValidator must know of a message. All of it is known since the message was appended.
type MessageShape struct {
	Format  session.Format
	Role    string
	Flags   Flags
	Calls   []string
	Answers []string

	Seq, Tokens int64 // if they were read with the shape, else 0
}

// ShapeOf returns the shape of a message that was inspected.
func ShapeOf(f session.Format, m *Facts) MessageShape {
	shape := MessageShape{Format: f, Role: m.Role, Flags: m.Flags}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case Call:
			shape.Calls = append(shape.Calls, p.CallID)
		case Result:
			shape.Answers = append(shape.Answers, p.CallID)
		}
	}
	return shape
}
