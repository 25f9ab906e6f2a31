package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// OpenAI Responses input items, as the type ResponseInputItem of OpenAI's API reference has them (openai-node,
// resources/responses). An item is one Message.
//
//	message, and an item of a role alone    User, Assistant, System; any other role Other
//	content                                 a string one Text, an array a block for each block
//	input_text, output_text, text,
//	summary_text, reasoning_text            Text
//	refusal                                 Text with Refusal
//	input_image, computer_screenshot        Image; a data: URL is split
//	input_file, input_audio                 File
//	reasoning                               Reasoning of an Assistant: its texts, a line each; encrypted_content is
//	                                        the Signature
//	function_call, custom_tool_call         Call of an Assistant; arguments are the object inside their string, and
//	                                        the string itself if it holds no object. The input of a custom tool is
//	                                        Custom
//	shell_call, local_shell_call,
//	apply_patch_call, computer_call         Call of the tool shell, local_shell, apply_patch, computer: action or
//	                                        operation are the arguments
//	…_call_output                           Result of a Tool: a string one Text, an array a block for each element,
//	                                        any other output its JSON as a text. An apply_patch that failed IsError
//	mcp_approval_response                   Opaque of a User
//	item_reference, compaction, tools that
//	the provider ran, any other item        Opaque of an Assistant, or of the role that it names
//	any other block                         Opaque
//	any other member                        Extra, the id among them; annotations and other members of a block stay
//	                                        in its bytes, which other formats do not get
//
// What other formats can express and items cannot, and what is written instead:
//
//	reasoning                          a text of the assistant: the provider refuses reasoning that it has not
//	                                   encrypted
//	a message of the assistant         output_text without an id: ids are never made up
//	images and files of the assistant  a note
//	sounds, and files of other
//	providers by their id              a note
//	an image's name                    a note in front
//	a document that is a text          that text
//	a result that is an error          a text that begins with [Error]
//	a speaker's name                   a note in front
//	anything that is Opaque            its JSON as a text
//
// A call of shell, local_shell, apply_patch or computer that a repair has changed is one of a function of that name,
// and so is its result.

// The members of items that Varve gives a meaning to.
const (
	itemType = iota
	itemRole
	itemContent
	itemCallID
	itemID
	itemName
	itemArguments
	itemInput
	itemAction
	itemActions
	itemOperation
	itemOutput
	itemStatus
	itemSummary
	itemEncrypted
	itemResult
	itemMembers
)

var itemNames = []string{
	"type", "role", "content", "call_id", "id", "name", "arguments", "input", "action", "actions", "operation",
	"output", "status", "summary", "encrypted_content", "result",
}

type itemValues = [itemMembers]Span

// The members of items that the intermediate representation has fields for. All others are Extra.
var (
	messageWords  = []string{"type", "role", "content"}
	functionWords = []string{"type", "call_id", "name", "arguments"}
	customWords   = []string{"type", "call_id", "name", "input"}
	resultWords   = []string{"type", "call_id", "output"}
)

// itemForm describes the items of one type.
type itemForm struct {
	kind  Kind
	value int    // the member that carries the weight
	tool  string // the one tool that calls of this type are of; "" if calls name theirs
}

// itemForms has the types of items that are calls, their results, and reasoning. A result's type is that of its call
// followed by "_output". Items of other types, among them the tools that the provider runs itself, are Opaque:
// they answer nothing, and nothing answers them.
var itemForms = map[string]itemForm{
	"function_call":           {Call, itemArguments, ""},
	"custom_tool_call":        {Call, itemInput, ""},
	"shell_call":              {Call, itemAction, "shell"},
	"local_shell_call":        {Call, itemAction, "local_shell"},
	"apply_patch_call":        {Call, itemOperation, "apply_patch"},
	"computer_call":           {Call, itemAction, "computer"},
	"function_call_output":    {Result, itemOutput, ""},
	"custom_tool_call_output": {Result, itemOutput, ""},
	"shell_call_output":       {Result, itemOutput, "shell"},
	"local_shell_call_output": {Result, itemOutput, "local_shell"},
	"apply_patch_call_output": {Result, itemOutput, "apply_patch"},
	"computer_call_output":    {Result, itemOutput, "computer"},
	"reasoning":               {Reasoning, itemSummary, ""},
}

// openAIResponses reads one input item. Items that are no message have no role: calls, reasoning and what the
// provider's own tools did are the assistant's, results the tool's.
//
// StartsUnit is true for every item of the assistant, because an item alone does not tell what it follows. But
// reasoning and the item that it led to, and the calls of one answer, are several items: a unit never begins between
// two adjacent items of the assistant.
func (s *scanner) openAIResponses(top int) {
	var v itemValues
	s.pick(top, itemNames, v[:])
	s.facts.StartsUnit = true
	if s.isMessage(&v) {
		s.responsesMessage(top, &v)
		return
	}
	raw := Span{Start: top, End: rawjson.Skip(s.body, top)}
	kind := s.name(v[itemType])
	form := itemForms[kind]
	if kind == "custom_tool_call" || kind == "custom_tool_call_output" {
		s.facts.Flags |= FlagCustom
	}
	s.itemRole(form.kind, kind, v[itemRole])
	switch form.kind {
	case Call:
		s.itemCall(raw, form, &v)
	case Result:
		s.itemResult(raw, form, &v)
	case Reasoning:
		s.itemReasoning(raw, &v)
	default:
		s.add(Part{Kind: Opaque, Raw: raw, Tokens: s.opaqueTokens(raw, kind, &v)})
	}
}

// isMessage reports whether the item is a message, whose type may be missing.
func (s *scanner) isMessage(v *itemValues) bool {
	return s.equals(v[itemType], "message") || s.absent(v[itemType]) && !s.absent(v[itemRole])
}

// isMessageItem reports what isMessage does, of an item that was not read.
func isMessageItem(item []byte) bool {
	kind := member(item, "type")
	return isType(item, "message") || kind == Span{} && member(item, "role") != Span{}
}

func (s *scanner) responsesMessage(top int, v *itemValues) {
	s.role(v[itemRole])
	s.setRole(v[itemRole])
	s.keepOthers(top, messageWords)
	s.content(v[itemContent], s.responsesBlock)
	s.filled = s.filled || s.is(v[itemContent], '"')
}

func (s *scanner) itemRole(kind Kind, name string, role Span) {
	switch {
	case kind == Result:
		s.facts.Role = "tool"
		s.facts.StartsUnit = false
	case name == approvalResponse:
		s.facts.Role = "user"
		s.facts.StartsUnit = false
	case s.is(role, '"') && !s.empty(role) && kind == Opaque:
		s.role(role)
	default:
		s.facts.Role = "assistant"
	}
	s.setRole(role)
	if s.ir != nil && kind == Result {
		s.ir.message().Role = Tool
		s.ir.message().Name = nil
	}
}

// approvalResponse is an item of the user that goes with one of the assistant before it.
const approvalResponse = "mcp_approval_response"

func (s *scanner) itemCall(raw Span, form itemForm, v *itemValues) {
	part := Part{Kind: Call, Raw: raw, Value: s.itemArguments(form, v), Name: form.tool, Fixed: form.tool != ""}
	part.CallID = s.callID(v[itemCallID], func() string { return "/call_id" })
	if form.tool == "" {
		part.Name = s.toolName(v[itemName])
		part.Tokens = s.tokens(v[itemName])
	}
	part.Tokens += s.tokens(part.Value)
	if b := s.add(part); b != nil {
		s.callBlock(b, raw, form, part.Value, v[itemName])
	}
}

// callBlock completes the block of a call. The message keeps its other members unless only its own type of item can
// have them.
func (s *scanner) callBlock(b *Block, raw Span, form itemForm, value, name Span) {
	if form.tool != "" {
		b.Name = rawjson.Quote(nil, []byte(form.tool))
		return
	}
	b.Name = s.literal(name)
	words := functionWords
	switch {
	case form.value == itemInput:
		words = customWords
		b.Custom = true
		b.Value = []byte(`""`)
		if !s.absent(value) {
			b.Value = s.freeText(value)
		}
	case !s.absent(value):
		b.Value = s.arguments(value)
	}
	s.keepOthers(raw.Start, words)
}

// itemArguments returns the arguments of a call. A computer may be asked several things at once.
func (s *scanner) itemArguments(form itemForm, v *itemValues) Span {
	if value := v[form.value]; !s.absent(value) || form.tool != "computer" {
		return value
	}
	return v[itemActions]
}

// itemResult reads the output of a call. Its Value is what a text can replace: all of a string, all of the output of a
// function or a custom tool, and of a shell's output the text of its only command.
func (s *scanner) itemResult(raw Span, form itemForm, v *itemValues) {
	output := v[itemOutput]
	part := Part{Kind: Result, Raw: raw, CallID: s.itemResultID(v), Name: form.tool}
	part.IsError = s.equals(v[itemStatus], "failed")
	if form.tool == "" || s.is(output, '"') {
		part.Value = output
	}
	var b *Block
	switch {
	case form.tool == "":
		b = s.result(part, output, s.responsesBlock)
	case form.tool == "computer" && s.is(output, '{'):
		b = s.screenshot(part, output)
	default:
		if form.tool == "shell" && part.Value == (Span{}) {
			part.Value = s.shellText(output)
		}
		b = s.jsonResult(part, output)
	}
	if b == nil {
		return
	}
	b.Custom = s.equals(v[itemType], "custom_tool_call_output")
	if form.tool == "" {
		s.keepOthers(raw.Start, resultWords)
	}
}

// screenshot adds a result that is one image.
func (s *scanner) screenshot(part Part, output Span) *Block {
	v := s.responsesValues(output)
	part.Tokens = s.pictureTokens(&v)
	s.facts.Flags |= FlagImage | FlagResultNotText
	b := s.add(part)
	if b != nil {
		s.ir.content = &b.Content
		s.responsesBlock(output)
		s.ir.content = nil
	}
	return b
}

// itemResultID returns the id of the call that a result is of. A local shell has it in another member.
func (s *scanner) itemResultID(v *itemValues) string {
	if s.equals(v[itemType], "local_shell_call_output") && s.absent(v[itemCallID]) {
		return s.callID(v[itemID], func() string { return "/id" })
	}
	return s.callID(v[itemCallID], func() string { return "/call_id" })
}

var shellNames = []string{"stdout"}

// shellText returns the standard output of a shell that ran one command, the zero Span for several.
func (s *scanner) shellText(output Span) (text Span) {
	if !s.is(output, '[') {
		return text
	}
	chunks := 0
	for chunk := range rawjson.Elements(s.body, output.Start) {
		if chunks++; chunks > 1 || !s.is(chunk, '{') {
			return Span{}
		}
		var stdout [1]Span
		s.pick(chunk.Start, shellNames, stdout[:])
		if s.is(stdout[0], '"') {
			text = stdout[0]
		}
	}
	return text
}

// itemReasoning reads reasoning. What the model gets back is the encrypted content, if there is any; else the texts.
func (s *scanner) itemReasoning(raw Span, v *itemValues) {
	part := Part{Kind: Reasoning, Raw: raw}
	var texts [][]byte // for the intermediate representation
	count := 0
	for _, array := range [...]Span{v[itemSummary], v[itemContent]} {
		if !s.is(array, '[') {
			continue
		}
		for element := range rawjson.Elements(s.body, array.Start) {
			text := s.responsesValues(element)[responsesText]
			if !s.is(text, '"') {
				continue
			}
			count++
			part.Value = text
			part.Tokens += s.tokens(text)
			if s.ir != nil {
				texts = append(texts, text.Of(s.body))
			}
		}
		if count > 1 {
			part.Value = array
		}
	}
	encrypted := v[itemEncrypted]
	if s.is(encrypted, '"') && !s.empty(encrypted) {
		part.Tokens = s.encrypted(encrypted)
	}
	b := s.add(part)
	if b == nil {
		return
	}
	b.Text = nil
	if len(texts) > 0 {
		b.Text = joinLines(texts)
	}
	if !s.empty(encrypted) {
		b.Signature = encrypted.Of(s.body)
	}
}

// opaqueTokens returns the tokens of an item as it is written, unless it holds what the model does not read as text.
func (s *scanner) opaqueTokens(raw Span, kind string, v *itemValues) int {
	switch {
	case kind == "compaction" && s.is(v[itemEncrypted], '"'):
		return s.encrypted(v[itemEncrypted])
	case kind == "image_generation_call" && s.is(v[itemResult], '"'):
		return tokens.TiledImage("", s.measure(v[itemResult]))
	}
	return s.tokens(raw)
}

// The members of the blocks of a message or an output.
const (
	responsesType = iota
	responsesText
	responsesRefusal
	responsesImageURL
	responsesFileID
	responsesDetail
	responsesFileData
	responsesFileURL
	responsesFilename
	responsesAudio
	responsesMembers
)

var responsesNames = []string{
	"type", "text", "refusal", "image_url", "file_id", "detail", "file_data", "file_url", "filename", "input_audio",
}

type responsesValues = [responsesMembers]Span

// responsesValues reads the members of a block. A value that is no object has none.
func (s *scanner) responsesValues(block Span) (v responsesValues) {
	if s.is(block, '{') {
		s.pick(block.Start, responsesNames, v[:])
	}
	return v
}

// responsesKind returns the kind of a block.
func (s *scanner) responsesKind(v *responsesValues) Kind {
	switch s.name(v[responsesType]) {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if s.is(v[responsesText], '"') {
			return Text
		}
	case "refusal":
		if s.is(v[responsesRefusal], '"') {
			return Text
		}
	case "input_image", "computer_screenshot":
		return Image
	case "input_file", "input_audio":
		return File
	}
	return Opaque
}

// textOf returns the text of a block, or that of a refusal.
func (s *scanner) textOf(v *responsesValues) Span {
	if s.equals(v[responsesType], "refusal") {
		return v[responsesRefusal]
	}
	return v[responsesText]
}

func (s *scanner) responsesBlock(raw Span) {
	v := s.responsesValues(raw)
	switch s.responsesKind(&v) {
	case Text:
		if s.equals(v[responsesType], "refusal") {
			s.refusal(raw, v[responsesRefusal])
		} else {
			s.text(raw, v[responsesText])
		}
	case Image:
		if b := s.add(Part{Kind: Image, Raw: raw, Tokens: s.pictureTokens(&v)}); b != nil {
			b.Media = Media{ID: s.literal(v[responsesFileID]), Detail: s.literal(v[responsesDetail])}
			s.openAIURL(&b.Media, v[responsesImageURL])
		}
	case File:
		if b := s.add(Part{Kind: File, Raw: raw, Tokens: tokens.Unknown}); b != nil {
			b.Media = s.responsesFile(&v)
		}
	default:
		s.opaque(raw)
	}
}

func (s *scanner) responsesFile(v *responsesValues) Media {
	if s.equals(v[responsesType], "input_audio") {
		return s.audio(v[responsesAudio])
	}
	m := Media{
		ID: s.literal(v[responsesFileID]), Name: s.literal(v[responsesFilename]), URL: s.literal(v[responsesFileURL]),
	}
	if !s.openAIData(&m, v[responsesFileData]) {
		m.Data = s.literal(v[responsesFileData])
	}
	return m
}

// pictureTokens returns the cost of an image.
func (s *scanner) pictureTokens(v *responsesValues) int {
	return tokens.TiledImage(s.name(v[responsesDetail]), s.measureURL(v[responsesImageURL]))
}

// byID reports whether the provider finds a reasoning by its id alone: it is not in the item itself.
func byID(item []byte) bool {
	return member(item, "id") != (Span{}) && member(item, "encrypted_content") == (Span{})
}
