package wire

import (
	"context"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// maxWarnings is how many of a message are told.
const maxWarnings = 20

// MayWarn reports whether Warnings may return something for a message.
func MayWarn(f session.Format, m *Facts) bool {
	isPlain := m.Flags&FlagCommon != 0 || f != session.OpenAIChat && f != session.AISDK
	return m.Flags&FlagMayNeedRepair != 0 || !isPlain
}

// Warnings returns what a view in the message's own format, for a model ("" for not known), will repair or leave out of
// a message, whatever is around it. What only a provider says and does not take back is not told, nor what its own
// server would rather have in another form: an answer is nobody's mistake. A code is the kind of a repair.
func Warnings(f session.Format, body []byte, flags Flags, model string) (list []session.Warning) {
	server := provider.For(f, "", model)
	if flags&FlagMayNeedRepair == 0 && server == provider.Of(f) {
		return nil
	}
	body, _ = renamedCompaction(f, body)
	answers := isAnswer(f, body)
	for _, in := range intrudersIn(f, body) {
		if answers && in.answered {
			continue
		}
		w := session.Warning{Pointer: pointerAt(body, in.at.Start), Code: "member_dropped"}
		w.Detail = "the API does not take this member: views leave it out"
		if in.of != nil {
			w.Code, w.Detail = "block_as_note", "the API has no block of this type: views have a text"
		} else {
			w.Pointer += "/" + spelling.EscapePointer(in.name)
		}
		list = append(list, w)
	}
	view := []Stored{{Format: f, Body: body}}
	faults, _ := mediaFaults(context.Background(), view, server, model)
	for i := range faults {
		fault := &faults[i]
		at := pointerAt(body, fault.at.Start)
		list = append(list, session.Warning{Pointer: at, Code: fault.repair(), Detail: fault.detail()})
	}
	list = append(list, repairWarnings(f, body, model, answers)...)
	return list[:min(len(list), maxWarnings)]
}

// repairsAlone returns the repairs of a message by itself, for a model.
func repairsAlone(f session.Format, body []byte, model string) []Repair {
	r := repairerOf(f, []Stored{{Format: f, Body: body}})
	r.Model, r.provider = model, provider.For(f, "", model)
	_, _ = r.prepare(context.Background()) // which never ends
	return r.repairs
}

// repairWarnings returns what is repaired of a message but for its members, blocks and media.
func repairWarnings(f session.Format, body []byte, model string, answers bool) (list []session.Warning) {
	repairs := repairsAlone(f, body, model)
	var told []string
	if answers {
		told = append(told, answeredKinds...)
		always := repairsAlone(f, body, "")
		repairs = slices.DeleteFunc(repairs, func(made Repair) bool {
			return !slices.ContainsFunc(always, func(r Repair) bool { return r.Kind == made.Kind })
		})
	}
	at := placesIn(f, body)
	switch {
	case f == session.AISDK && member(body, "parts") == (Span{}): // a ModelMessage, which is read
		told = append(told, "part_mended", "approval_moved")
	case f == session.Gemini && answers && at.onlyVoid():
		told = append(told, "part_mended")
	}
	if f == session.Anthropic && orderOf(at.parts).lateResult {
		detail := "results are moved before everything else in their message"
		repairs = append(repairs, Repair{Rule: "V-A3", Kind: "results_first", Detail: detail})
	}
	for _, repair := range repairs {
		purged := repair.Rule == provider.Of(f).Codes.Members && slices.Contains(purgedKinds, repair.Kind)
		if purged || repair.Rule == "V-T2" || repair.Rule == "V-T3" || slices.Contains(told, repair.Kind) {
			continue
		}
		w := session.Warning{Pointer: at.of(repair.Kind), Code: repair.Kind, Detail: repair.Detail}
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// answeredKinds are the repairs of what providers answer, and do not take back: sources beside the content, and nothing
// at all.
var answeredKinds = []string{"sources_as_note", "empty_text", "empty_message"}

// purgedKinds are the repairs of members and blocks that the provider does not take.
var purgedKinds = []string{"member_dropped", "block_as_note"}

// isAnswer reports whether a message may be what a provider answered: the assistant's, or an item of one.
func isAnswer(f session.Format, body []byte) bool {
	role := stringMember(body, "role")
	return role == "assistant" || role == "model" || role == "" && f != session.OpenAIChat && f != session.Anthropic
}

// pointerAt returns the JSON pointer of the innermost object that a place in a message is in, or that begins there.
func pointerAt(body []byte, at int) (pointer string) {
	for i := rawjson.Start(body); ; {
		next, name := -1, ""
		switch body[i] {
		case '{':
			for key, value := range rawjson.Members(body, i) {
				if value.Start <= at && at < value.End {
					next, name = value.Start, spelling.EscapePointer(string(unquoted(key.Of(body))))
				}
			}
		case '[':
			n := 0
			for element := range rawjson.Elements(body, i) {
				if element.Start <= at && at < element.End {
					next, name = element.Start, strconv.Itoa(n)
				}
				n++
			}
		}
		if next < 0 {
			return pointer
		}
		pointer += "/" + name
		if i = next; i == at {
			return pointer
		}
	}
}

// carriers are members that carry what a message says, or what a part is, in some formats, and nothing in others.
var carriers = []string{"tool_calls", "tool_call_id", "function_call", "parts", "content", "toolInvocations", "type",
	"image", "mediaType"}

// MayBeOther reports whether a message, be it one that Inspect refuses, has what its format has no word for and another
// format may: a role, the type of a block, what carries the content.
func MayBeOther(f session.Format, body []byte) bool {
	if start := rawjson.Start(body); start == len(body) || body[start] != '{' {
		return false
	}
	says := func(name string) bool { return member(body, name) != Span{} }
	switch f {
	case session.Gemini:
		if !says("parts") {
			return true
		}
	case session.AISDK:
	default:
		if says("parts") && !says("content") {
			return true
		}
	}
	role := stringMember(body, "role")
	if role == "" && f != session.OpenAIResponses || role != "" && !takesRole(f, role) ||
		f == session.AISDK && !says("parts") {
		return true
	}
	return slices.ContainsFunc(intrudersIn(f, body), func(in intruder) bool {
		return in.of != nil || slices.Contains(carriers, in.name) && in.name != "parts"
	})
}

// RoleOf returns the role that a message names, "" for none.
func RoleOf(body []byte) string { return stringMember(body, "role") }

// SaysContent reports whether a message has a content.
func SaysContent(body []byte) bool { return member(body, "content") != Span{} }

func takesRole(f session.Format, role string) bool {
	p := provider.Of(f)
	return p.KnowsRole(role) || p.SeparateSystem && (role == "system" || role == "developer")
}

// MeantRole returns the role that a role is probably a misspelling of, "" for one that is known somewhere, or is not
// like any.
func MeantRole(f session.Format, role string) string {
	for _, other := range session.Formats() {
		if takesRole(other, role) {
			return ""
		}
	}
	meant, _ := spelling.Closest(role, provider.Of(f).Roles)
	return meant
}
