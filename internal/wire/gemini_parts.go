package wire

import (
	"bytes"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
)

// standIn is what the provider takes for the signature of a call that another model made.
const standIn = "skip_thought_signature_validator"

// partData lists the members that hold a part's data: a part must have exactly one. It may have any of partFacts as
// well.
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

// fault is the problem of a part of a Gemini content.
type fault uint8

const (
	noFault fault = iota
	noData        // it has no data
	badCall       // it is a call or a response that is no object, or whose arguments or response are none
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
	return noFault
}

// partCount counts the kinds of data that a part has, and its members that are neither data nor about it: data of a
// kind that is not known yet. Null counts as nothing: Google's package for Python writes it for all that a part lacks.
func partCount(part []byte, known func(name string) bool) (data, unknown int) {
	for key, value := range rawjson.Members(part, 0) {
		name := string(unquoted(key.Of(part)))
		switch {
		case part[value.Start] == 'n':
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
	if !bytes.HasPrefix(key, []byte(`"function`)) || value[0] == 'n' {
		return ""
	}
	if value[0] != '{' {
		return "it is no object"
	}
	for _, name := range [...]string{"args", "response"} {
		if inner := valueOf(value, name); inner != nil && inner[0] != '{' {
			return name + " is no object"
		}
	}
	return ""
}

// signatureNames are the members that hold a signature.
var signatureNames = []string{"thoughtSignature", "thought_signature"}

func signatureOf(part []byte) string {
	for _, name := range signatureNames {
		if signature := stringMember(part, name); signature != "" {
			return signature
		}
	}
	return ""
}
