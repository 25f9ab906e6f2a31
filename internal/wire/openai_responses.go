package wire

import (
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// The members of Responses items that Varve gives a meaning to.
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
	"type", "role", "content", "call_id", "id", "name", "arguments", "input", "action", "actions", "operation", "output", "status",
	"summary", "encrypted_content", "result",
}

type itemValues = [itemMembers]Span

// itemForm says what an item of one type is.
type itemForm struct {
	kind  Kind
	value int    // the member that carries the weight
	tool  string // the one tool that a call of this type is of; "" if calls name theirs
}

// itemForms are the types of items that are calls, their results, and reasoning. A result's type is that of its call with
// "_output" behind it. Items of other types, among them the tools that the provider runs itself, are Opaque: they answer
// nothing, and nothing answers them.
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

// openAIResponses reads one input item. Items that are no message have no role: calls, reasoning and what the provider's
// own tools did are the assistant's, results the tool's.
//
// StartsUnit is true for every item of the assistant, because an item alone does not tell what it follows. But reasoning
// and the item that it led to, and the calls of one answer, are several items: a unit never begins between two of the
// assistant that stand together.
func (s *scanner) openAIResponses(top int) {
	var v itemValues
	s.pick(top, itemNames, v[:])
	s.facts.StartsUnit = true
	if s.isMessage(&v) {
		s.role(v[itemRole])
		s.content(v[itemContent], s.responsesBlock)
		s.filled = s.filled || s.is(v[itemContent], '"')
		return
	}
	raw, kind := Span{Start: top, End: rawjson.Skip(s.body, top)}, s.name(v[itemType])
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

// isMessage reports whether the item is a message, which need not say so.
func (s *scanner) isMessage(v *itemValues) bool {
	return s.isText(v[itemType], "message") || s.absent(v[itemType]) && !s.absent(v[itemRole])
}

func (s *scanner) itemRole(kind Kind, name string, role Span) {
	switch {
	case kind == Result:
		s.facts.Role, s.facts.StartsUnit = "tool", false
	case name == approvalResponse:
		s.facts.Role, s.facts.StartsUnit = "user", false
	case s.is(role, '"') && !s.empty(role) && kind == Opaque:
		s.role(role)
	default:
		s.facts.Role = "assistant"
	}
}

// approvalResponse is an item of the user that goes with one of the assistant before it.
const approvalResponse = "mcp_approval_response"

func (s *scanner) itemCall(raw Span, form itemForm, v *itemValues) {
	part := Part{Kind: Call, Raw: raw, Value: s.itemArguments(form, v), Name: form.tool, Fixed: form.tool != ""}
	part.CallID = s.callID(v[itemCallID], func() string { return "/call_id" })
	if form.tool == "" {
		part.Name = s.name(v[itemName])
		part.Tokens = s.tokens(v[itemName])
	}
	part.Tokens += s.tokens(part.Value)
	s.add(part)
}

// itemArguments is what a call was asked; a computer may be asked several things at once.
func (s *scanner) itemArguments(form itemForm, v *itemValues) Span {
	if value := v[form.value]; !s.absent(value) || form.tool != "computer" {
		return value
	}
	return v[itemActions]
}

// itemResult reads the output of a call. Its Value is what a text can take the place of: all of a string, all of the output
// of a function or a custom tool, and of a shell's the text of its only command.
func (s *scanner) itemResult(raw Span, form itemForm, v *itemValues) {
	output := v[itemOutput]
	part := Part{Kind: Result, Raw: raw, CallID: s.itemResultID(v), Name: form.tool, IsError: s.isText(v[itemStatus], "failed")}
	switch {
	case s.absent(output):
	case s.is(output, '"'):
		part.Value, part.Tokens = output, s.later(output)
	case form.tool == "":
		part.Value, part.Tokens = output, s.outputTokens(output)
	case form.tool == "shell":
		part.Value, part.Tokens = s.shellText(output), s.tokens(output)
		s.facts.Flags |= FlagResultNotText
	case form.tool == "computer":
		part.Tokens = s.responsesMedia(output)
		s.facts.Flags |= FlagImage | FlagResultNotText
	default:
		part.Tokens = s.tokens(output)
		s.facts.Flags |= FlagResultNotText
	}
	s.add(part)
}

// itemResultID is the id of the call that a result is of. A local shell's is in another member.
func (s *scanner) itemResultID(v *itemValues) string {
	if s.isText(v[itemType], "local_shell_call_output") && s.absent(v[itemCallID]) {
		return s.callID(v[itemID], func() string { return "/id" })
	}
	return s.callID(v[itemCallID], func() string { return "/call_id" })
}

// shellText is the standard output of a shell that ran one command, the zero Span for several.
func (s *scanner) shellText(output Span) (text Span) {
	if !s.is(output, '[') {
		return text
	}
	n := 0
	for chunk := range rawjson.Elements(s.body, output.Start) {
		if n++; n > 1 || !s.is(chunk, '{') {
			return Span{}
		}
		var v [1]Span
		s.pick(chunk.Start, []string{"stdout"}, v[:])
		if s.is(v[0], '"') {
			text = v[0]
		}
	}
	return text
}

// itemReasoning reads reasoning. What the model gets back is the encrypted content, if there is any; else the texts.
func (s *scanner) itemReasoning(raw Span, v *itemValues) {
	part := Part{Kind: Reasoning, Raw: raw}
	texts := 0
	for _, array := range [...]Span{v[itemSummary], v[itemContent]} {
		if !s.is(array, '[') {
			continue
		}
		for element := range rawjson.Elements(s.body, array.Start) {
			if text := s.responsesValues(element)[responsesText]; s.is(text, '"') {
				texts++
				part.Value = text
				part.Tokens += s.tokens(text)
			}
		}
		if texts > 1 {
			part.Value = array
		}
	}
	if encrypted := v[itemEncrypted]; s.is(encrypted, '"') && !s.empty(encrypted) {
		part.Tokens = s.encrypted(encrypted)
	}
	s.add(part)
}

// opaqueTokens are those of an item as it is written, unless it holds what the model does not read as text.
func (s *scanner) opaqueTokens(raw Span, kind string, v *itemValues) int {
	switch {
	case kind == "compaction" && s.is(v[itemEncrypted], '"'):
		return s.encrypted(v[itemEncrypted])
	case kind == "image_generation_call" && s.is(v[itemResult], '"'):
		return tokens.TiledImage("", tokens.Measure(s.plain(v[itemResult])))
	}
	return s.tokens(raw)
}
