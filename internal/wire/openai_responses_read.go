package wire

import (
	"slices"

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
// docs/formats.md has what becomes of what other formats can express and this one cannot.
//
// A call of shell, local_shell, apply_patch or computer that a repair has changed is one of a function of that name,
// and so is its result.

// itemForm describes the items of one type.
type itemForm struct {
	kind  Kind
	value string // the member that carries the weight
	tool  string // the one tool that calls of this type are of; "" if calls name theirs
}

// itemForms has the types of items that are calls, their results, and reasoning. A result's type is that of its call
// followed by "_output". Items of other types, among them the tools that the provider runs itself, are Opaque:
// they answer nothing, and nothing answers them.
var itemForms = map[string]itemForm{
	"function_call":           {Call, "arguments", ""},
	"custom_tool_call":        {Call, "input", ""},
	"shell_call":              {Call, "action", "shell"},
	"local_shell_call":        {Call, "action", "local_shell"},
	"apply_patch_call":        {Call, "operation", "apply_patch"},
	"computer_call":           {Call, "action", "computer"},
	"function_call_output":    {Result, "output", ""},
	"custom_tool_call_output": {Result, "output", ""},
	"shell_call_output":       {Result, "output", "shell"},
	"local_shell_call_output": {Result, "output", "local_shell"},
	"apply_patch_call_output": {Result, "output", "apply_patch"},
	"computer_call_output":    {Result, "output", "computer"},
	"reasoning":               {Reasoning, "summary", ""},
}

// itemTools are the tools whose calls and outputs have forms of their own, by the number of the form.
var itemTools = []string{"", "shell", "local_shell", "apply_patch", "computer"}

// openAIResponses reads one input item. Items that are no message have no role: calls, reasoning and what the
// provider's own tools did are the assistant's, results the tool's.
//
// StartsUnit is true for every item of the assistant, because an item alone does not tell what it follows. But
// reasoning and the item that it led to, and the calls of one answer, are several items: a unit never begins between
// two adjacent items of the assistant.
func (s *scanner) openAIResponses(top Span) {
	s.top = s.object(top)
	v := &s.top
	s.facts.StartsUnit = true
	head := s.itemHead(v)
	if s.ir != nil {
		s.ir.item = head
	}
	kind := head.kind
	s.itemID(kind, v.at("id"))
	if kind == messageItem {
		s.responsesMessage(v)
		return
	}
	raw := Span{Start: top.Start, End: rawjson.Skip(s.body, top.Start)}
	form := itemForms[kind]
	if kind == "custom_tool_call" || kind == "custom_tool_call_output" {
		s.facts.Flags |= FlagCustom
	}
	s.facts.Flags |= Flags(slices.Index(itemTools, form.tool)) << formShift
	s.itemRole(form.kind, kind, v.at("role"))
	switch form.kind {
	case Call:
		s.itemCall(raw, form, v)
	case Result:
		s.itemResult(raw, form, v)
	case Reasoning:
		s.itemReasoning(raw, v)
	default:
		s.state = true
		s.loose = s.loose || textArguments[kind] && !s.is(v.at("arguments"), '"')
		s.add(Part{Kind: Opaque, Raw: raw, Tokens: s.opaqueTokens(raw, kind, v)})
	}
}

// itemHead reads the head of an item.
func (s *scanner) itemHead(v *object) itemHead {
	kind := v.at("type")
	if s.equals(kind, messageItem) || s.absent(kind) && !s.absent(v.at("role")) {
		return itemHead{messageItem, s.value(v.at("id"))}
	}
	return itemHead{s.name(kind), s.value(v.at("id"))}
}

// headOf returns the head of an item that was not read.
func headOf(item []byte) itemHead {
	s := scanner{body: item}
	var v object
	if start := rawjson.Start(item); start < len(item) {
		v = s.object(Span{Start: start, End: len(item)})
	}
	return s.itemHead(&v)
}

func isMessageItem(item []byte) bool { return headOf(item).kind == messageItem }

// messageItem is the type of an item that is a message, and what an item of a role alone is.
const messageItem = "message"

func (s *scanner) responsesMessage(v *object) {
	s.role(v.at("role"))
	s.keepOthers(v, "type", "role", "content")
	s.content(v.at("content"), s.responsesBlock)
	s.loose = s.loose || s.absent(v.at("content"))
	s.filled = s.filled || s.is(v.at("content"), '"')
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

// itemCall reads a call. The message keeps its other members unless only its own type of item can have them.
func (s *scanner) itemCall(raw Span, form itemForm, v *object) {
	part := Part{Raw: raw, Value: v.at(form.value), Name: form.tool, Fixed: form.tool != ""}
	part.CallID = s.callID(v.at("call_id"), func() string { return "/call_id" })
	if part.Fixed {
		if form.tool == "computer" && s.absent(part.Value) { // it may be asked several things at once
			part.Value = v.at("actions")
		}
		if b := s.call(part, Span{}); b != nil {
			b.Name = rawjson.Quote(nil, []byte(form.tool))
		}
		return
	}
	part.Name = s.toolName(v.at("name"))
	s.openAICall(part, v.at("name"), form.value == "input")
	s.keepOthers(v, "type", "call_id", "name", form.value)
}

// itemResult reads the output of a call. Its Value is what a text can replace: all of a string, all of the output of a
// function or a custom tool, and of a shell's output the text of its only command.
func (s *scanner) itemResult(raw Span, form itemForm, v *object) {
	output := v.at("output")
	part := Part{Kind: Result, Raw: raw, CallID: s.itemResultID(v), Name: form.tool}
	part.IsError = s.equals(v.at("status"), "failed")
	if form.tool == "" || s.is(output, '"') {
		part.Value = output
	}
	var b *Block
	switch {
	case form.tool == "":
		b = s.result(part, output, s.responsesBlock)
		s.keepOthers(v, "type", "call_id", "output")
	case form.tool == "computer" && s.is(output, '{'):
		b = s.screenshot(part, output)
	default:
		if form.tool == "shell" && part.Value == (Span{}) {
			part.Value = s.shellText(output)
		}
		b = s.jsonResult(part, output)
	}
	if b != nil {
		b.Custom = s.equals(v.at("type"), "custom_tool_call_output")
	}
}

// screenshot adds a result that is one image.
func (s *scanner) screenshot(part Part, output Span) *Block {
	if s.ir != nil {
		return s.resultOf(part, func() { s.responsesBlock(output) })
	}
	v := s.object(output)
	part.Tokens = s.pictureTokens(&v)
	s.facts.Flags |= FlagImage | FlagResultNotText
	return s.add(part)
}

// itemResultID returns the id of the call that a result is of. A local shell has it in another member.
func (s *scanner) itemResultID(v *object) string {
	name := "call_id"
	if s.equals(v.at("type"), "local_shell_call_output") && s.absent(v.at(name)) {
		name = "id"
	}
	return s.callID(v.at(name), func() string { return "/" + name })
}

// shellText returns the standard output of a shell that ran one command, the zero Span for several.
func (s *scanner) shellText(output Span) (text Span) {
	chunks := 0
	for chunk := range s.elements(output) {
		if chunks++; chunks > 1 || !s.is(chunk, '{') {
			return Span{}
		}
		v := s.object(chunk)
		if stdout := v.at("stdout"); s.is(stdout, '"') {
			text = stdout
		}
	}
	return text
}

// itemReasoning reads reasoning. What the model gets back is the encrypted content, if there is any; else the texts.
func (s *scanner) itemReasoning(raw Span, v *object) {
	part := Part{Kind: Reasoning, Raw: raw}
	var texts [][]byte // for the intermediate representation
	count := 0
	for _, array := range [...]Span{v.at("summary"), v.at("content")} {
		for element := range s.elements(array) {
			block := s.object(element)
			text := block.at("text")
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
	encrypted := v.at("encrypted_content")
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
func (s *scanner) opaqueTokens(raw Span, kind string, v *object) int {
	encrypted, result := v.at("encrypted_content"), v.at("result")
	switch {
	case (kind == "compaction" || kind == olderCompaction) && s.is(encrypted, '"'):
		return s.encrypted(encrypted)
	case kind == "image_generation_call" && s.is(result, '"'):
		return tokens.TiledImage("", s.measure(result))
	}
	return s.tokens(raw)
}

// responsesKind returns the kind of a block.
func (s *scanner) responsesKind(v *object) Kind {
	switch s.name(v.at("type")) {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if s.is(v.at("text"), '"') {
			return Text
		}
	case "refusal":
		if s.is(v.at("refusal"), '"') {
			return Text
		}
	case "input_image", "computer_screenshot":
		return Image
	case "input_file", "input_audio":
		return File
	}
	return Opaque
}

func (s *scanner) responsesBlock(raw Span) {
	v := s.object(raw)
	switch s.responsesKind(&v) {
	case Text:
		s.cites(&v, "annotations")
		if s.equals(v.at("type"), "refusal") {
			s.refusal(raw, v.at("refusal"))
		} else {
			s.text(raw, v.at("text"))
		}
	case Image:
		s.media(Image, raw, s.pictureTokens(&v), func() Media {
			m := Media{ID: s.literal(v.at("file_id")), Detail: s.literal(v.at("detail"))}
			s.readURL(&m, v.at("image_url"))
			return m
		})
	case File:
		sound, cost := v.at("input_audio"), s.fileTokens(v.at("file_data"), "", tokens.CostsOfOpenAI)
		if s.is(sound, '{') {
			cost = s.soundTokens(sound)
		}
		s.media(File, raw, cost, func() Media {
			if s.equals(v.at("type"), "input_audio") {
				return s.audio(sound)
			}
			m := s.openAIFile(&v)
			m.URL = s.literal(v.at("file_url"))
			return m
		})
	default:
		s.opaque(raw)
	}
}

// pictureTokens returns the cost of an image.
func (s *scanner) pictureTokens(v *object) int {
	return tokens.TiledImage(s.name(v.at("detail")), s.measureURL(v.at("image_url")))
}

// byID reports whether the provider finds a reasoning by its id alone: it is not in the item itself.
func byID(item []byte) bool {
	return member(item, "id") != (Span{}) && member(item, "encrypted_content") == (Span{})
}
