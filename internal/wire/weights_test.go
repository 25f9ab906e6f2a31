package wire

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// weightless are the members that may be large and whose bytes count nothing, by format, with the reason.
var weightless = map[session.Format]map[string]string{
	session.OpenAIChat: {
		"tools": "only an array of the system goes out", "reasoning_details": "only an array goes out", "thinking_blocks": "only an array goes out",
		"content[image_url].image_url.url": "a picture counts by its size", "content[input_audio].input_audio.data": "a sound counts as one",
		"content[file].file.file_data": "a file counts as one",
	},
	session.OpenAIResponses: {
		"[reasoning].summary": "only an array is read", "[reasoning].content": "only an array is read", "[image_generation_call].result": "a picture counts by its size",
		"[message][].content[input_image].image_url": "a picture counts by its size", "[message][].content[input_file].file_data": "a file counts as one",
		"[function_call_output].output[input_image].image_url": "a picture counts by its size", "[function_call_output].output[input_file].file_data": "a file counts as one",
		"[custom_tool_call_output].output[input_image].image_url": "a picture counts by its size", "[custom_tool_call_output].output[input_file].file_data": "a file counts as one",
	},
	session.Anthropic: {
		"content[image].source.data": "a picture counts by its size", "content[document].source.data": "a file counts as one",
		"content[tool_result].content[image].source.data": "a picture counts by its size", "content[tool_result].content[document].source.data": "a file counts as one",
		"content[document].source.content": "it counts where the source is one of content", "content[tool_result].content[document].source.content": "it counts where the source is one of content",
	},
	session.Gemini: {
		"parts.inlineData.data": "a picture counts by its size", "parts.inline_data.data": "a picture counts by its size",
		"parts.functionResponse.parts": "only an array is read", "parts.function_response.parts": "only an array is read",
	},
	session.AISDK: {
		"id": "no model sees it", "metadata": "no model sees it", "createdAt": "no model sees it", "annotations": "no model sees it",
		"data": "no model sees it", "reasoning": "its parts are sent", "toolInvocations": "its parts are sent",
		"parts[file].url": "a file counts as one",
	},
}

// large is what the tests put into a member: 40 kB.
var large = `"` + strings.Repeat("the report of may ", 2222) + `"`

// TestWhatGoesOutIsCounted puts 40 kB into each member that the table lets out, in every format: a view with it has
// thousands of tokens more.
func TestWhatGoesOutIsCounted(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		known := map[string]bool{}
		for place, body := range largeMembers(provider.Message(f), "") {
			body = strings.Replace(body, "{", `{"role":"`+roleFor(f, place)+`",`, 1)
			facts, err := Inspect(f, []byte(body))
			if err != nil {
				continue // it is refused: an id, a role
			}
			if f == session.Anthropic {
				_, place, _ = strings.Cut(place, "].") // the same for all roles
			}
			reason := weightless[f][place]
			known[place] = true
			if got := facts.Tokens > 5000; got != (reason == "") {
				t.Errorf("%s: %s of 40 kB has %d tokens (%s): %.200s", f, place, facts.Tokens, reason, body)
			}
		}
		for place := range weightless[f] {
			if !known[place] {
				t.Errorf("%s: there is no %s", f, place)
			}
		}
	}
}

func roleFor(f session.Format, place string) string {
	if strings.HasPrefix(place, "[system]") {
		return "system"
	}
	for _, of := range []string{"[assistant]", "tool_calls", "tool-", "dynamic-tool", "thinking", "function_call"} {
		if strings.Contains(place, of) {
			return "assistant"
		}
	}
	return "user"
}

// largeMembers returns, for each member of an object of the table and of what is in it, an object with a large one.
func largeMembers(o *provider.Object, place string) map[string]string {
	made := map[string]string{}
	if o.By != "" {
		kinds := map[string]*provider.Object{}
		for name, kind := range o.Kinds {
			kinds[name] = kind
		}
		for prefix, kind := range o.Prefix {
			kinds[prefix] = kind
		}
		for name, kind := range kinds {
			for inner, body := range largeMembers(kind, place+"["+name+"]") {
				if o.By == "role" {
					made[inner] = body
					continue
				}
				value := name
				if strings.HasSuffix(name, "-") {
					value += "f"
				}
				made[inner] = strings.Replace(body, "{", fmt.Sprintf(`{"%s":"%s",`, o.By, value), 1)
			}
		}
		return made
	}
	for _, m := range o.Members {
		at := strings.TrimPrefix(place+"."+m.Name, ".")
		switch {
		case m.Null || m.Name == "type" || m.Name == "role":
		case m.In == nil:
			made[at] = fmt.Sprintf(`{%s"%s":%s}`, beside(place, m.Name), m.Name, large)
		default:
			for inner, body := range largeMembers(m.In, at) {
				if m.In.By != "" || m.Name == "tool_calls" || m.Name == "citations" {
					body = "[" + body + "]"
				}
				made[inner] = fmt.Sprintf(`{%s"%s":%s}`, beside(place, m.Name), m.Name, body)
			}
		}
	}
	return made
}

// beside returns what an object needs beside a member to be one of its kind.
func beside(place, name string) string {
	for suffix, members := range map[string]string{
		"[tool_result]": `"tool_use_id":"c",`, "[function_call_output]": `"call_id":"c",`, "[custom_tool_call_output]": `"call_id":"c",`,
		"[text]": `"text":"a",`, "[image].source": `"type":"base64","media_type":"image/png",`, "[document].source": `"type":"base64",`,
		"functionResponse": `"name":"f",`, "functionCall": `"name":"f",`, "[dynamic-tool]": `"toolCallId":"c","toolName":"f","state":"output-available",`,
		"[tool-]": `"toolCallId":"c","state":"output-available",`,
	} {
		if strings.HasSuffix(place, suffix) && !strings.Contains(members, `"`+name+`":`) {
			return members
		}
	}
	return ""
}

// TestAPDFCountsByItsPages has a PDF of 20 pages in every format, as data or as a URL that holds it.
func TestAPDFCountsByItsPages(t *testing.T) {
	t.Parallel()
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\n" + strings.Repeat("1 0 obj<</Type/Page /Parent 2 0 R /Contents 3 0 R>>endobj\n", 20)))
	for f, c := range map[session.Format]struct {
		body string
		want int
	}{
		session.OpenAIChat:      {`{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,%s"}}]}`, 30_000},
		session.OpenAIResponses: {`{"role":"user","content":[{"type":"input_file","file_data":"data:application/pdf;base64,%s"}]}`, 30_000},
		session.Anthropic:       {`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"%s"}}]}`, 45_000},
		session.Gemini:          {`{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"%s"}}]}`, 5_160},
		session.AISDK:           {`{"id":"m","role":"user","parts":[{"type":"file","mediaType":"application/pdf","url":"data:application/pdf;base64,%s"}]}`, 45_000},
	} {
		facts, err := Inspect(f, fmt.Appendf(nil, c.body, pdf))
		if err != nil || facts.Tokens != c.want+MessageTokens {
			t.Errorf("%s: %d tokens, want %d: %v", f, facts.Tokens, c.want, err)
		}
	}
}
