package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestNoSecretGetsIntoAStubOrASummary compacts a conversation whose commands and outputs have a secret of each kind,
// once without summaries and once with one.
func TestNoSecretGetsIntoAStubOrASummary(t *testing.T) {
	t.Parallel()
	kinds := map[string][2]string{}
	data, err := os.ReadFile("../compact/resource/testdata/secrets.json")
	if err == nil {
		err = json.Unmarshal(data, &kinds)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	quoted := func(text string) string { q, _ := json.Marshal(text); return string(q) }
	messages := []string{`{"role":"user","content":"go"}`}
	for name, c := range kinds {
		text := strings.ReplaceAll(c[1], "#", c[0])
		arguments := quoted(`{"command":` + quoted(text) + `}`)
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%s,"type":"function","function":{"name":"bash","arguments":%s}}]}`, quoted(name), arguments),
			fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, quoted(name), quoted(text+"\n"+strings.Repeat("a line of output\n", 60))))
	}
	for range 12 {
		messages = append(messages, `{"role":"assistant","content":"done"}`, `{"role":"user","content":"go on"}`)
	}
	for _, summarise := range []bool{false, true} {
		body := fmt.Sprintf(`{"format":"openai-chat","window_tokens":6000,"policy":{"trim":{"enabled":true},"summarise":{"enabled":%t}},"messages":[%s]}`, summarise, strings.Join(messages, ","))
		got := decoded[struct {
			Messages []struct{ Role, Content string }
		}](w.must(http.StatusOK, "POST", "/v1/compact", body))
		compacted := 0
		for _, m := range got.Messages {
			whole := m.Role == "tool" && strings.Count(m.Content, "a line of output\n") > 1 // or its head and tail
			if whole || m.Content == "go on" || m.Content == "done" {
				continue
			}
			compacted++
			for name, c := range kinds {
				if strings.Contains(m.Content, c[0]) {
					t.Errorf("summarise %t: %s is in …%q", summarise, name, around(m.Content, c[0]))
				}
			}
		}
		if compacted == 0 {
			t.Errorf("summarise %t: nothing was compacted", summarise)
		}
		t.Logf("summarise %t: %d of %d messages were compacted", summarise, compacted, len(got.Messages))
	}
}

func around(text, part string) string {
	i := strings.Index(text, part)
	return text[max(0, i-40):min(len(text), i+len(part)+20)]
}
