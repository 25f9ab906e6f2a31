package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// logOf returns a text of about that many bytes, of lines that are all different, some of them very long.
func logOf(size int) string {
	var text strings.Builder
	for n := 0; text.Len() < size; n++ {
		fmt.Fprintf(&text, "%d request %x took %d ms — ünï\n", n, n*7919, n%977)
		if n%9000 == 8999 {
			text.WriteString(strings.Repeat("a long line é ", 6000) + "\n")
		}
		if n == 10_000 {
			text.WriteString("the needle is 8d1f77\n")
		}
	}
	return text.String()
}

// mustAll calls a tool that must answer, and again as long as an answer has a cursor, and returns all texts.
func (a agent) mustAll(name string, with map[string]any) string {
	a.Helper()
	var texts strings.Builder
	for more := true; more; {
		text, structured := a.must(name, with)
		texts.WriteString(text)
		with["cursor"], more = structured["next_cursor"].(string)
	}
	return texts.String()
}

// TestAnAgentReadsAResultToItsEnd: over MCP, old and new, following nothing but what the answers say.
func TestAnAgentReadsAResultToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := logOf(1 << 20)
	ref := w.withResult("s", result)
	url, token := w.serve(t), w.newToken("s", `{}`).Text
	for _, version := range versions {
		a := w.agent(t, url, version, bearer{token: token})
		if version == versions[0] {
			if read := a.readAll("read_result", map[string]any{"ref": ref, "max_bytes": 102400}); read != result {
				t.Errorf("%s: %d bytes were read, not the %d of the result", version, len(read), len(result))
			}
			messages := a.readAll("get_messages", map[string]any{"ref": "m1-3", "max_bytes": 102400})
			if !strings.Contains(messages, result) {
				t.Errorf("the %d bytes of the messages lack the result", len(messages))
			}
		}
		found := a.mustAll("grep_results", map[string]any{"pattern": "needle", "ref": ref})
		if !strings.Contains(found, "the needle is 8d1f77") {
			t.Errorf("%s: grep: %s", version, found)
		}
		found = a.mustAll("search_session", map[string]any{"query": "needle"})
		if !strings.Contains(found, "8d1f77") || !strings.Contains(found, ref) {
			t.Errorf("%s: search: %s", version, found)
		}
	}
}
