package wire

import (
	"bytes"
	"iter"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/tokens"
)

// scanner reads one message, in one pass, for every purpose: the facts alone (ir is nil), or the intermediate
// representation, where tokens are not estimated and no parts are collected.
type scanner struct {
	body   []byte
	facts  Facts
	filled bool                           // a part has content
	common bool                           // Chat Completions: what FlagCommon says
	loose  bool                           // something in it is as its provider does not take it
	strict bool                           // Chat Completions: a call is one that not every server takes
	inside bool                           // the content of a result is being read
	idSum  Flags                          // Responses: a sum of the item's id, 0 for none
	err    error                          // the first problem of the message
	count  func(text string) (int, error) // counts the tokens of a text; nil estimates them
	reader *Reader                        // nil for a message that is new
	ir     *collector                     // collects the intermediate representation; nil if only the facts are wanted

	misnamed bool // Chat Completions: the provider refuses its name

	format session.Format
	top    object          // the members of the message
	shown  []medium        // that were not looked at yet
	within []Span          // texts in the content of results, which no part has by itself
	halves *rawjson.Halves // nil: they have to be looked for
	state  bool            // it may load tools, or have a provider's own compaction
}

// collector collects the intermediate representation of one message while a scanner reads it.
type collector struct {
	format  session.Format
	list    []Message // at least one; the last one is being read
	numbers int       // parts of the message that were added
	content []Block   // of the result whose content is being read
	results []Block   // AI SDK: of the step that is being read
	stepEnd bool      // AI SDK: the step has ended: the next block begins another message
	seen
}

// seen is what repairs ask of a message that was read, besides its content.
type seen struct {
	item   itemHead // Responses
	twin   []byte   // Chat Completions: a function_call beside tool_calls, which repeats one of them
	model  bool     // AI SDK: a ModelMessage
	marked bool     // Anthropic: it may have marks for the provider's cache
	shows  bool     // images or files
}

// itemHead says what an item of Responses is.
type itemHead struct {
	kind string // its type, which a message may lack
	id   []byte // the value of its id, nil if it has none
}

func (c *collector) message() *Message { return &c.list[len(c.list)-1] }

// swapContent sets the content that is being read, and returns the one before. It does nothing without a collector.
func (c *collector) swapContent(content []Block) (before []Block) {
	if c != nil {
		before = c.content
		c.content = content
	}
	return before
}

// add adds an empty block, to the content of a result if inside is true, and returns it.
func (c *collector) add(kind Kind, inside bool) *Block {
	if c.stepEnd {
		c.list = append(c.list, Message{Role: Assistant})
		c.stepEnd = false
	}
	var blocks *[]Block
	switch {
	case inside:
		blocks = &c.content
	case kind == Result && c.format == session.AISDK && c.message().Role != Tool:
		blocks = &c.results
	default:
		blocks = &c.message().Blocks
	}
	*blocks = append(*blocks, Block{Kind: kind, Format: c.format})
	if !inside {
		c.numbers++
		(*blocks)[len(*blocks)-1].number = c.numbers
	}
	return &(*blocks)[len(*blocks)-1]
}

// add adds a part. If the intermediate representation is wanted it returns the part's block, in which the caller sets
// what a Part does not have; else nil. The block is valid until the next one is added.
func (s *scanner) add(p Part) *Block {
	m := &s.facts
	m.Tokens += p.Tokens
	if s.inside && p.Kind != Text {
		m.Flags |= FlagResultNotText
	}
	switch p.Kind {
	case Text:
		s.filled = s.filled || p.Tokens > 0
	case Image, File:
		m.Flags |= FlagImage
		s.filled = true
	case Reasoning:
		m.Flags |= FlagReasoning
		s.filled = true
	default:
		s.filled = true
	}
	switch {
	case s.ir != nil:
		return s.addBlock(&p)
	case s.inside:
		if s.is(p.Value, '"') {
			s.within = append(s.within, p.Value)
		}
		return nil
	}
	p.Index = len(m.Parts)
	m.Parts = append(m.Parts, p)
	return nil
}

// cites marks the message that is being read as one that may name sources, if what was read of it has any of these
// members.
func (s *scanner) cites(v *object, names ...string) {
	if s.ir == nil {
		return
	}
	for _, name := range names {
		if !s.absent(v.at(name)) {
			s.ir.message().cites = true
		}
	}
}

// addBlock adds the block of a part, as far as the part knows it. A part that can be replaced as a whole has no Raw
// there: a content string, or the arguments and the output inside a tool part of a UIMessage.
func (s *scanner) addBlock(p *Part) *Block {
	b := s.ir.add(p.Kind, s.inside)
	b.CallID = p.CallID
	b.IsError = p.IsError
	if p.Raw != p.Value {
		b.Raw = p.Raw.Of(s.body)
	}
	switch p.Kind {
	case Text, Reasoning:
		b.Text = s.value(p.Value)
	case Call:
		b.Value = s.value(p.Value)
	}
	return b
}

// object reads the members of the object at. A value that is no object has none. A repeated name is flagged.
func (s *scanner) object(at Span) (v object) {
	if !s.is(at, '{') {
		return v
	}
	for key, value := range rawjson.Members(s.body, at.Start) {
		if !v.set(s.body, key, value) {
			s.facts.Flags |= FlagDuplicateKeys
		}
	}
	return v
}

// keepOthers sets what the intermediate representation keeps of a message, whose members are v, besides those of
// these names.
func (s *scanner) keepOthers(v *object, names ...string) {
	if s.ir == nil || v.onlyHas(names) {
		return
	}
	s.ir.message().Extra = v.others(s.body, names)
}

// elements yields the elements of the array at. Any other value has none. It must stay small enough to be inlined, for
// else every loop over it allocates.
func (s *scanner) elements(at Span) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		if s.is(at, '[') {
			rawjson.Elements(s.body, at.Start)(yield)
		}
	}
}

// inner returns the value of a member inside members, the zero Span if one of them is missing, null or no object.
func (s *scanner) inner(at Span, path ...string) Span {
	for _, name := range path {
		value := member(at.Of(s.body), name)
		if value == (Span{}) {
			return Span{}
		}
		at = Span{Start: at.Start + value.Start, End: at.Start + value.End}
	}
	return at
}

// maxRoleBytes bounds a role: providers have a handful of short words.
const maxRoleBytes = 64

// role reads the role, which every format has, and sets that of the intermediate representation.
func (s *scanner) role(at Span) {
	size := at.End - at.Start - len(`""`)
	switch {
	case at == Span{}:
		s.fail("/role", "a message needs a role, for example \"user\"")
	case !s.is(at, '"'):
		s.fail("/role", "role must be a string, this is %s", s.describe(at.Start))
	case size == 0:
		s.fail("/role", "role must not be empty, it could be \"user\"")
	case size > maxRoleBytes:
		s.fail("/role", "role must have at most %d bytes, this one has %d", maxRoleBytes, size)
	}
	if s.err != nil {
		return
	}
	s.facts.Role = s.name(at)
	if s.facts.Role == "system" || s.facts.Role == "developer" {
		s.facts.Flags |= FlagPinned
	}
	s.setRole(at)
}

// setRole gives the message of the intermediate representation the role that its format spells like OpenAI does. at is
// where the role is.
func (s *scanner) setRole(at Span) {
	if s.ir == nil {
		return
	}
	n := s.ir.message()
	switch s.facts.Role {
	case "user":
		n.Role = User
	case "assistant":
		n.Role = Assistant
	case "system", "developer":
		n.Role = System
	default:
		n.Role = Other
		n.Name = at.Of(s.body)
	}
}

// callID reads the id of a call. It returns "" for one that is missing or null: old formats have none.
func (s *scanner) callID(at Span, pointer func() string) string {
	if s.absent(at) {
		return ""
	}
	if !s.is(at, '"') {
		s.fail(pointer(), "the id of a call must be a string, this is %s", s.describe(at.Start))
		return ""
	}
	id := s.identifier(at, intern)
	if len(id) > session.MaxCallIDBytes {
		s.fail(pointer(), "the id of a call must have at most %d bytes, this one has %d",
			session.MaxCallIDBytes, len(id))
	}
	return id
}

// name returns the text of a string literal that becomes an identifier or a column, and "" for any other value. A text
// that the database cannot hold (NUL, lone surrogates) is returned as it is written, with its escapes.
func (s *scanner) name(at Span) string {
	if s.reader != nil {
		return s.identifier(at, s.reader.known)
	}
	return s.identifier(at, intern)
}

func (s *scanner) identifier(at Span, share func(text []byte) string) string {
	if !s.is(at, '"') {
		return ""
	}
	inner := s.body[at.Start+1 : at.End-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return share(inner)
	}
	text, ok := rawjson.Unquote(nil, at.Of(s.body))
	if !ok || bytes.IndexByte(text, 0) >= 0 {
		text = inner
	}
	return string(text)
}

// intern saves the allocation for the roles that nearly every message has.
func intern(text []byte) string {
	switch string(text) {
	case "user":
		return "user"
	case "assistant":
		return "assistant"
	case "tool":
		return "tool"
	case "system":
		return "system"
	}
	return string(text)
}

// toolName returns the decoded name of a tool, for a Part. Blocks keep the JSON literal instead.
func (s *scanner) toolName(at Span) string {
	if s.ir != nil {
		return ""
	}
	return s.name(at)
}

// functionCallID returns the id that pairs a function_call with its result where neither has one: it is made of the
// function's name.
func (s *scanner) functionCallID(name, pointer string) string {
	id := functionPrefix + name
	if len(id) > session.MaxCallIDBytes {
		s.fail(pointer, "the name of a function must have at most %d bytes, this one has %d",
			session.MaxCallIDBytes-len(functionPrefix), len(name))
	}
	return id
}

func (s *scanner) fail(pointer, format string, args ...any) {
	if s.err == nil {
		s.err = session.Invalid(pointer, "invalid_message", format, args...)
	}
}

// is reports whether the value at begins with b: '"', '{' or '['.
func (s *scanner) is(at Span, b byte) bool { return at != Span{} && s.body[at.Start] == b }

// absent reports whether a member is missing or null.
func (s *scanner) absent(at Span) bool { return at == Span{} || s.body[at.Start] == 'n' }

// equals reports whether the value at is the string literal of text.
func (s *scanner) equals(at Span, text string) bool {
	return s.is(at, '"') && rawjson.KeyIs(s.body, at, text)
}

// empty reports whether the value at is missing, null or "".
func (s *scanner) empty(at Span) bool { return s.absent(at) || string(at.Of(s.body)) == `""` }

// value returns the JSON value at, nil if it is missing or null.
func (s *scanner) value(at Span) []byte {
	if s.absent(at) {
		return nil
	}
	return at.Of(s.body)
}

// literal returns the string literal at, nil if the value is not one.
func (s *scanner) literal(at Span) []byte {
	if !s.is(at, '"') {
		return nil
	}
	return at.Of(s.body)
}

// plain returns the text of a string literal. It copies only a text with escapes.
func (s *scanner) plain(at Span) []byte {
	inner := s.body[at.Start+1 : at.End-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, _ := rawjson.Unquote(nil, at.Of(s.body))
	return text
}

// tokens estimates what the model sees of the value at: of a string its text, of any other value its JSON. For the
// intermediate representation it only tells nothing (0) from something (1).
func (s *scanner) tokens(at Span) int {
	switch {
	case s.absent(at):
		return 0
	case s.count != nil:
		return s.counted(at)
	case s.ir != nil && s.empty(at):
		return 0
	case s.ir != nil:
		return 1
	case s.body[at.Start] == '"':
		return tokens.EstimateLiteral(at.Of(s.body))
	}
	return tokens.Estimate(at.Of(s.body))
}

// counted counts what tokens estimates.
func (s *scanner) counted(at Span) int {
	text := at.Of(s.body)
	if text[0] == '"' {
		text, _ = rawjson.Unquote(nil, text)
	}
	n, err := s.count(string(text))
	if s.err == nil {
		s.err = err
	}
	return n
}

// encrypted estimates the tokens of a text that the message holds only encrypted, in base64: four bytes for three, and
// about four of those to a token.
func (s *scanner) encrypted(at Span) int {
	if s.empty(at) {
		return 0
	}
	return ((at.End-at.Start-len(`""`))*3 + 15) / 16
}

// describe names the type of the value that starts at i.
func (s *scanner) describe(i int) string {
	if i == len(s.body) {
		return "nothing"
	}
	return spelling.KindOf(s.body[i])
}

// later estimates the tokens of a string, unless the sum of its message may tell them.
func (s *scanner) later(at Span) int {
	if s.reader == nil || s.inside || !s.is(at, '"') {
		return s.tokens(at)
	}
	return 0
}

// Reader reads messages again whose tokens are known since they were appended. It does not estimate what the sum of a
// message's parts tells, and shares memory between messages: for a whole session that is twice as fast as Inspect. The
// zero Reader is ready for use, by one goroutine.
type Reader struct {
	parts []Part
	names map[string]string
}

// known returns the text as a string that other messages share.
func (r *Reader) known(text []byte) string {
	name, ok := r.names[string(text)]
	if !ok {
		name = string(text)
		r.names[name] = name
	}
	return name
}
