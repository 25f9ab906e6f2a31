package tools

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Offer returns the tools as the definitions that a provider takes in its member "tools". What a provider's schemas
// cannot say is left to the check of the arguments.
//
//	anthropic         [{"name", "description", "input_schema"}]
//	openai-chat       [{"type": "function", "function": {"name", "description", "parameters", "strict"}}]
//	openai-responses  [{"type": "function", "name", "description", "parameters", "strict"}]
//	gemini            [{"functionDeclarations": [{"name", "description", "parameters"}]}]
//	ai-sdk            [{"type": "function", "name", "description", "inputSchema"}]
func Offer(f session.Format, list []*Definition) []any {
	offered := make([]any, 0, len(list))
	for _, d := range list {
		offered = append(offered, d.offer(f))
	}
	if f == session.Gemini {
		return []any{object{"functionDeclarations": offered}}
	}
	return offered
}

func (d *Definition) offer(f session.Format) object {
	made := object{"name": d.Name, "description": d.Description}
	switch f {
	case session.Anthropic:
		made["input_schema"] = d.inputSchema(true)
	case session.OpenAIChat:
		// Strict schemas have no optional arguments: a model would have to write every one of them.
		made["parameters"], made["strict"] = d.inputSchema(true), false
		return object{"type": "function", "function": made}
	case session.OpenAIResponses:
		made["type"] = "function"
		made["parameters"], made["strict"] = d.inputSchema(true), false
	case session.Gemini:
		made["parameters"] = geminiSchema(d.inputSchema(false))
	case session.AISDK:
		made["type"], made["inputSchema"] = "function", d.inputSchema(true)
	}
	return made
}

// geminiSchema returns a schema in Gemini's subset of OpenAPI's: types in capitals, and nothing about other members.
func geminiSchema(schema object) object {
	made := object{}
	for name, value := range schema {
		switch v := value.(type) {
		case object:
			made[name] = geminiMembers(name, v)
		case string:
			made[name] = v
			if name == "type" {
				made[name] = strings.ToUpper(v)
			}
		default:
			made[name] = v
		}
	}
	return made
}

func geminiMembers(name string, value object) object {
	if name != "properties" {
		return geminiSchema(value)
	}
	made := object{}
	for property, schema := range value {
		made[property] = geminiSchema(schema.(object))
	}
	return made
}
