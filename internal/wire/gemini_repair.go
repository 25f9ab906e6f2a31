package wire

import (
	"bytes"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// standIn is what the provider takes for the signature of a call that another model made.
const standIn = "skip_thought_signature_validator"

// partData are the members of a part of which it has exactly one; partFacts say something about that.
var (
	partData = []string{
		"text",
		"inlineData", "fileData", "functionCall", "functionResponse",
		"executableCode", "codeExecutionResult", "toolCall", "toolResponse",
		"inline_data", "file_data", "function_call", "function_response",
		"executable_code", "code_execution_result", "tool_call", "tool_response",
	}
	partFacts = map[string]bool{
		"thought": true, "thoughtSignature": true, "thought_signature": true,
		"videoMetadata": true, "video_metadata": true,
		"mediaResolution": true, "media_resolution": true, "partMetadata": true, "part_metadata": true,
	}
)

// fault is what is wrong with a part of a Gemini content.
type fault uint8

const (
	sound   fault = iota
	noData        // it has nothing to say
	badCall       // it is a call or a response without a name, or whose arguments or response are no object
	notOne        // it is no object itself, or has several kinds of data
)

func faultOf(part []byte) fault {
	if len(part) == 0 || part[0] != '{' {
		return notOne
	}
	data, unknown := partCount(part, func(name string) bool { return slices.Contains(partData, name) })
	switch {
	case data > 1:
		return notOne
	case data+unknown == 0:
		return noData
	}
	for key, value := range rawjson.Members(part, 0) {
		if badFunction(key.Of(part), value.Of(part)) != "" {
			return badCall
		}
	}
	return sound
}

// partCount counts the kinds of data that a part has, and its members that are neither data nor about it: data of a
// kind that is not known yet.
func partCount(part []byte, known func(name string) bool) (data, unknown int) {
	for key := range rawjson.Members(part, 0) {
		name := string(unquoted(key.Of(part)))
		switch {
		case known(name):
			data++
		case !partFacts[name]:
			unknown++
		}
	}
	return data, unknown
}

// badFunction returns the problem of a member that is a call or a response, "" for none and for other members.
func badFunction(key, value []byte) string {
	if !bytes.HasPrefix(key, []byte(`"function`)) {
		return ""
	}
	if stringMember(value, "name") == "" {
		return "it has no name"
	}
	for _, name := range [...]string{"args", "response"} {
		if inner := valueOf(value, name); inner != nil && inner[0] != '{' {
			return name + " is no object"
		}
	}
	return ""
}

func signatureOf(part []byte) string {
	if signature := stringMember(part, "thoughtSignature"); signature != "" {
		return signature
	}
	return stringMember(part, "thought_signature")
}

// withoutSignature returns a part of a Gemini content without its signature.
func withoutSignature(part []byte) []byte {
	s := scanner{body: part}
	others := s.others(0, []string{"thoughtSignature", "thought_signature"})
	return wrap(nil, "{", others, "}")
}

func (r *repairer) mendContent(n *Message) {
	if role := stringMember(n.Raw, "role"); role == "assistant" || role == "function" {
		n.Edited = true
		r.repaired("V-G4", "role_renamed", n, "the API calls the role %s otherwise", role)
	}
	if at := member(n.Raw, "parts"); at != (Span{}) && n.Raw[at.Start] != '[' {
		n.Edited = true
		r.repaired("V-G4", "part_mended", n, "parts is a list")
	}
	pieces := make([]Block, 0, len(n.Blocks))
	called := false
	for _, p := range n.Blocks {
		wrong := sound
		if p.Raw != nil {
			wrong = faultOf(p.Raw)
		}
		switch {
		case wrong == badCall:
			p.Edited = true
		case wrong == notOne:
			p = Block{Kind: Text, Text: substitute(&Block{Kind: Opaque, Raw: p.Raw}), Edited: true}
		case p.Kind == Call && called && string(unquotedName(p.Signature)) == standIn:
			p.Signature = nil
			p.Raw = withoutSignature(p.Raw)
			n.Edited = true
			r.repaired("V-G3", "signature_dropped", n,
				"only the first call of a content may say that it has no signature")
		}
		if called = called || p.Kind == Call; wrong != noData {
			pieces = append(pieces, p)
		}
		if wrong != sound {
			n.Edited = true
			r.repaired("V-G4", "part_mended", n, "a part is none that the API takes")
		}
	}
	n.Blocks = pieces
}

// sign gives the first call of each step of the current turn a signature, if it has none. Steps of earlier turns, where
// Gemini does not look, have the one that they had when theirs was the current turn, so that the view's beginning stays
// what the provider has cached; but for contents that came as they are.
func (r *repairer) sign(list []Message) {
	if r.target != session.Gemini || provider.IsOlderGemini(r.Model) {
		return
	}
	current := true
	for i := len(list) - 1; i >= 0; i-- {
		n := &list[i]
		current = current && n.Role != User
		if n.Role == Assistant && (current || n.Format != session.Gemini) && n.signFirst() {
			r.repaired("V-G3", "signature_skipped", n,
				"no signature came with the first call: it says that there is none")
		}
	}
}

func (n *Message) signFirst() bool {
	i := slices.IndexFunc(n.Blocks, func(p Block) bool { return p.Kind == Call })
	if i < 0 || isSigned(n.Blocks[i].Signature) {
		return false
	}
	n.Blocks = slices.Clone(n.Blocks)
	p := &n.Blocks[i]
	p.Signature = []byte(`"` + standIn + `"`)
	if p.Raw != nil && p.Format == session.Gemini {
		unsigned := withoutSignature(p.Raw)
		unsigned = unsigned[:len(unsigned)-1]
		p.Raw = wrap(unsigned, `,"thoughtSignature":`, p.Signature, "}")
	}
	n.Edited = true
	return true
}
