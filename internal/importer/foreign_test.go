package importer

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// refused is a file of every kind that is refused by its name, and what the refusal says.
var refused = map[string]string{
	`{"log":{"version":"1.2","creator":{},"entries":[{"request":{},"response":{}}]}}`:                                                                 "a HAR file",
	`{"cells":[{"cell_type":"code","source":[]}],"metadata":{},"nbformat":4}`:                                                                         "a Jupyter notebook",
	`[{"type":"message","user":"U1","text":"hi","ts":"1.2"}]`:                                                                                         "an export of Slack",
	`{"guild":{"id":"1"},"channel":{"id":"2"},"messages":[{"id":"3","content":"hi"}]}`:                                                                "an export of Discord",
	`{"name":"x","type":"personal_chat","id":1,"messages":[{"id":1,"type":"message","date_unixtime":"1","from_id":"user1","text":"hi"}]}`:             "an export of Telegram",
	`[{"header":"Gemini Apps","title":"Prompted hi","time":"2026-01-01T00:00:00Z"}]`:                                                                  "Google Takeout",
	`{"agents":[{"name":"a"}],"tools":[],"blocks":[]}`:                                                                                                "Letta",
	`{"store":{"chat1":[{"role":"user","content":"hi"}]},"class_name":"SimpleChatStore"}`:                                                             "LlamaIndex",
	`{"type":"TeamState","version":"1.0.0","agent_states":{"group_chat_manager/x":{}}}`:                                                               "AutoGen",
	`[{"Role":{"Label":"user"},"Items":[{"$type":"TextContent","Text":"hi"}]}]`:                                                                       "Semantic Kernel",
	`[{"_role":"user","_content":[{"text":"hi"}],"_name":null,"_meta":{}}]`:                                                                           "Haystack",
	`{"name":"w","nodes":[],"connections":{}}`:                                                                                                        "n8n",
	`{"data":{"nodes":[],"edges":[]},"name":"f"}`:                                                                                                     "Langflow",
	`{"app":{"mode":"chat","name":"x"},"kind":"app","version":"0.1"}`:                                                                                 "Dify",
	`{"spec":"chara_card_v2","data":{"name":"x"}}`:                                                                                                    "a character of SillyTavern",
	"{\"user_name\":\"Me\",\"character_name\":\"Bot\",\"create_date\":\"x\",\"chat_metadata\":{}}\n{\"name\":\"Me\",\"is_user\":true,\"mes\":\"hi\"}": "a chat of SillyTavern",
	`{"version":"0.3.0","messages":[{"User":{"content":[{"Text":"hi"}]}}]}`:                                                                           "Zed",
	`{"info":{"_postman_id":"x","name":"n"},"item":[]}`:                                                                                               "Postman",
	`{"openapi":"3.1.0","paths":{}}`:                                                                                                                  "OpenAPI",
	`[{"type":"function","function":{"name":"f","parameters":{}}}]`:                                                                                   "a list of tools",
	`{"resourceMetrics":[{"scopeMetrics":[]}]}`:                                                                                                       "OpenTelemetry's metrics",
	`{"object":"list","data":[{"object":"embedding","embedding":[0.1]}]}`:                                                                             "embeddings",
	"{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":\"c\",\"completion\":\"d\"}":                                                                "fine-tuning",
	`[{"chosen":"a","rejected":"b"}]`:                                                                                                                 "preferences",
	`[{"uuid":"p","name":"n","is_private":true,"prompt_template":"","docs":[]}]`:                                                                      "the projects of a Claude.ai export",
	`[{"uuid":"p","full_name":"A","email_address":"a@b.c"}]`:                                                                                          "the users of a Claude.ai export",
	`{"composerId":"x","fullConversationHeadersOnly":[]}`:                                                                                             "Cursor's or VS Code's",
}

func TestARefusalSaysWhatTheFileIs(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for file, want := range refused {
		_, err := Read(context.Background(), "s", []byte(file), Auto)
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Found, want) || unsupported.Missing != notImported {
			t.Errorf("%s: %v, want %s", file, err, want)
			continue
		}
		named[unsupported.Found] = true
	}
	for _, kind := range foreignKinds {
		if !named[kind.title] {
			t.Errorf("there is no sample of %s", kind.title)
		}
	}
}

// Files that look like messages of a provider, and are not: they are refused with the place, or read as what they are.
func TestWhatIsNotUnderstoodIsNotTakenForAnotherFormat(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		`[{"role":"user","parts":[{"part_kind":"user-prompt","content":"hi"}]}]`: "parts[0]",
		`[{"parts":[{"kind":"mystery","value":1}]}]`:                             "parts[0]",
		`[{"role":"user","parts":["hi"]}]`:                                       "parts[0]",
	} {
		f, err := Read(context.Background(), "s", []byte(file), Auto)
		if err == nil {
			t.Errorf("%s was read as %s: %s", file, f.Source, show(f))
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
