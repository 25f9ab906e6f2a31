package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/test/peers"
)

// words are the members and types of a table or a schema: "[assistant].content[text].citations" is a member of a text
// in a message of the assistant.
type words map[string]bool

// addObject adds the words of an object of the table.
func (w words) addObject(o *Object, place string) {
	for name, kind := range o.Kinds {
		w.addKind(kind, place+"["+name+"]")
	}
	for prefix, kind := range o.Prefix {
		w.addKind(kind, place+"["+prefix+"*]")
	}
	if o.Other != nil && o.nameOfOther() == "" {
		w.addObject(o.Other, place)
	}
	for _, m := range o.Members {
		w[place+"."+m.Name] = true
		if m.In != nil {
			w.addObject(m.In, place+"."+m.Name)
		}
	}
}

// nameOfOther returns the kind that an object without a kind is of, "" if it is of none of them.
func (o *Object) nameOfOther() string {
	for name, kind := range o.Kinds {
		if kind == o.Other {
			return name
		}
	}
	for prefix, kind := range o.Prefix {
		if kind == o.Other {
			return prefix + "*"
		}
	}
	return ""
}

func (w words) addKind(kind *Object, place string) {
	w[place] = true
	w.addObject(kind, place)
}

// schema is a published schema.
type schema struct{ definitions map[string]any }

// objects returns the objects that a value of a node is, or that are in its array.
func (s *schema) objects(node any) (list []map[string]any) {
	n, _ := node.(map[string]any)
	for ref, ok := n["$ref"].(string); ok; ref, ok = n["$ref"].(string) {
		n, _ = s.definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	for _, several := range []string{"anyOf", "allOf"} {
		alternatives, _ := n[several].([]any)
		for _, each := range alternatives {
			list = append(list, s.objects(each)...)
		}
	}
	if n["items"] != nil {
		list = append(list, s.objects(n["items"])...)
	}
	if n["properties"] != nil {
		list = append(list, n)
	}
	return list
}

func properties(object map[string]any) map[string]any {
	members, _ := object["properties"].(map[string]any)
	return members
}

// constants returns the values that a member may have, none if it may have any or is missing.
func (s *schema) constants(object map[string]any, name string) (values []string) {
	member, _ := properties(object)[name].(map[string]any)
	if ref, ok := member["$ref"].(string); ok {
		member, _ = s.definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	list, _ := member["enum"].([]any)
	if constant, ok := member["const"]; ok {
		list = append(list, constant)
	}
	for _, each := range list {
		if text, ok := each.(string); ok {
			values = append(values, text)
		}
	}
	return values
}

// addSchema adds the words of objects of a schema, as deep as the table looks into the object that they are.
func (w words) addSchema(s *schema, objects []map[string]any, o *Object, place string) {
	if o.By != "" {
		w.addKinds(s, objects, o, place)
		return
	}
	inside := map[string][]map[string]any{}
	for _, each := range objects {
		for name, member := range properties(each) {
			if !o.Open {
				w[place+"."+name] = true
			}
			inside[name] = append(inside[name], s.objects(member)...)
		}
	}
	for _, m := range o.Members {
		if m.In != nil && len(inside[m.Name]) > 0 {
			w.addSchema(s, inside[m.Name], m.In, place+"."+m.Name)
		}
	}
}

// addKinds adds the words of objects that differ by a member.
func (w words) addKinds(s *schema, objects []map[string]any, o *Object, place string) {
	kinds := map[string][]map[string]any{}
	for _, each := range objects {
		values := s.constants(each, o.By)
		if len(values) == 0 || o.Other != nil && !slices.Contains(required(each), any(o.By)) {
			values = append(values, "")
		}
		for _, value := range values {
			kinds[value] = append(kinds[value], each)
		}
	}
	if name := o.nameOfOther(); name != "" {
		kinds[name] = append(kinds[name], kinds[""]...)
		delete(kinds, "")
	}
	for value, list := range kinds {
		kind, name := o.Kind([]byte(value)), "["+value+"]"
		if _, ok := o.Kinds[value]; kind != nil && !ok {
			name = "[" + prefixOf(o, value) + "*]"
		}
		switch {
		case value == "" && o.Other != nil:
			w.addSchema(s, list, o.Other, place)
		case kind == nil:
			w[place+name] = true
		default:
			w[place+name] = true
			w.addSchema(s, list, kind, place+name)
		}
	}
}

func required(object map[string]any) []any {
	list, _ := object["required"].([]any)
	return list
}

func prefixOf(o *Object, value string) string {
	for prefix := range o.Prefix {
		if strings.HasPrefix(value, prefix) {
			return prefix
		}
	}
	return ""
}

// published are the schemas of each format.
var published = map[session.Format][]string{
	session.OpenAIChat:      {"openai-chat", "openapi-chat"},
	session.OpenAIResponses: {"openai-responses", "openapi-responses"},
	session.Anthropic:       {"anthropic"},
	session.Gemini:          {"gemini"},
	session.AISDK:           {"ai-sdk"},
}

// TestTheMembersAreThoseOfThePublishedSchemas compares the table with the schemas of test/peers, word by word: what one
// has and the other has not is an exception with a reason, or wrong.
func TestTheMembersAreThoseOfThePublishedSchemas(t *testing.T) {
	t.Parallel()
	for f, names := range published {
		table, schemas := words{}, words{}
		table.addObject(Message(f), "")
		for _, name := range names {
			var root map[string]any
			if err := json.Unmarshal(peers.Schema(t, name), &root); err != nil {
				t.Fatal(err)
			}
			s := &schema{}
			s.definitions, _ = root["$defs"].(map[string]any)
			schemas.addSchema(s, s.objects(root), Message(f), "")
		}
		for _, e := range exceptions[f] {
			e.take(t, f, table, schemas)
		}
		for _, word := range slices.Sorted(maps.Keys(table)) {
			if !schemas[word] {
				t.Errorf("%s: only the table has %s", f, word)
			}
		}
		for _, word := range slices.Sorted(maps.Keys(schemas)) {
			if !table[word] {
				t.Errorf("%s: only the schemas have %s", f, word)
			}
		}
	}
}

// exception are words that only the table has, or only a schema.
type exception struct {
	reason string
	words  string // separated by spaces; … at the end of one stands for any rest
}

// take removes the words of an exception, each of which must be one.
func (e *exception) take(t *testing.T, f session.Format, table, schemas words) {
	t.Helper()
	for pattern := range strings.FieldsSeq(e.words) {
		prefix, open := strings.CutSuffix(pattern, "…")
		found := false
		for _, side := range []struct{ has, other words }{{table, schemas}, {schemas, table}} {
			for word := range side.has {
				if is := word == pattern || open && strings.HasPrefix(word, prefix); is && !side.other[word] {
					delete(side.has, word)
					found = true
				}
			}
		}
		if !found {
			t.Errorf("%s: %s is no exception: %s", f, pattern, e.reason)
		}
	}
}

var exceptions = map[session.Format][]exception{
	session.Anthropic: {
		{"what only the system may say, or may not, is a rule of its own (V-A12)",
			"[system].content…"},
	},
	session.Gemini: {
		{"the API takes both spellings, the schema of a package for JavaScript has one",
			".parts.thought_signature .parts.function_call… .parts.function_response… .parts.inline_data… " +
				".parts.file_data… .parts.executable_code… .parts.code_execution_result… .parts.video_metadata " +
				".parts.media_resolution .parts.part_metadata .parts.tool_call .parts.tool_response " +
				".parts.audio_transcription .parts.speech_metadata .parts.media_processing " +
				".parts.functionCall.partial_args .parts.functionCall.will_continue " +
				".parts.functionResponse.will_continue .parts.inlineData.mime_type .parts.inlineData.display_name " +
				".parts.fileData.mime_type .parts.fileData.file_uri .parts.fileData.display_name"},
	},
	session.OpenAIChat: {
		{"DeepSeek, Qwen and Moonshot, vLLM, Groq and Ollama want it back", ".reasoning_content .reasoning"},
		{"Kimi takes tools that a message of the system declares", ".tools"},
		{"OpenRouter and LiteLLM want it back", ".reasoning_details .thinking_blocks"},
		{"Google wants signatures back", ".extra_content .tool_calls.extra_content"},
		{"LiteLLM has Google's signatures there", ".tool_calls.provider_specific_fields " +
			".tool_calls.function.provider_specific_fields"},
		{"Mistral, DeepSeek, Qwen and Kimi continue a message that has it", ".prefix .partial"},
		{"LiteLLM and OpenRouter pass it to Anthropic", ".cache_control .content[text].cache_control " +
			".content[image_url].cache_control .content[input_audio].cache_control .content[file].cache_control"},
		{"LiteLLM has it", ".content[image_url].image_url.format .content[file].file.format"},
		{"blocks of vLLM, Qwen and Mistral", ".content[video_url]… .content[audio_url]… .content[thinking]…"},
	},
	session.OpenAIResponses: {
		{"openai/codex sends it", "[custom_tool_call].status [custom_tool_call_output].name"},
		{"OpenAI's guide to the local shell sends it", "[local_shell_call_output].call_id"},
		{"OpenAI's OpenAPI document has none of them", "[image_generation_call].action " +
			"[image_generation_call].background [image_generation_call].error [image_generation_call].output_format " +
			"[image_generation_call].quality [image_generation_call].revised_prompt [image_generation_call].size " +
			"[image_generation_call].svg_usage"},
		{"only the assistant has phases", "[message][*].phase"},
		{"the API refuses it: supported values are output_text and refusal", "[message][assistant].content[input_text] " +
			"[message][assistant].content[input_image] [message][assistant].content[input_file]"},
	},
	session.AISDK: {
		{"members of messages of version 4", ".annotations .content .createdAt .data .experimental_attachments " +
			".reasoning .toolInvocations .parts[reasoning].reasoning .parts[reasoning].details .parts[file].mimeType " +
			".parts[file].data .parts[tool-invocation]"},
		{"the type in types.ts leaves them out: their names are the program's", ".parts[tool-*]… .parts[data-*]"},
		{"validateUIMessages takes them", ".parts[custom] .parts[reasoning-file] .parts[steering-message]"},
	},
}
