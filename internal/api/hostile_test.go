package api_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHostileTokensOverMCP changes a token in 1,000 ways, and takes it to other sessions.
func TestHostileTokensOverMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withResult("mine", "x")
	w.withResult("other", secret)
	token := w.newToken("mine", "").Text
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-. "
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	random := rand.New(rand.NewPCG(5, 4))
	for n := range 1000 {
		i, c := random.IntN(len(token)), alphabet[random.IntN(len(alphabet))]
		changed := token[:i] + string(c) + token[i+1:]
		got := w.ask("POST", "/mcp", list, "Authorization", "Bearer "+changed)
		if strings.TrimSpace(changed) != token && got.Code != http.StatusUnauthorized {
			t.Fatalf("change %d, %s: %d %s", n, changed, got.Code, got.Body)
		}
	}
	for _, id := range []string{"other", "absent", "..", "mine/../other"} {
		for _, path := range []string{"/mcp?session=" + strings.ReplaceAll(id, "/", "%2F"), "/mcp"} {
			header := ""
			if path == "/mcp" {
				header = id
			}
			got := w.ask("POST", path, list, "Authorization", "Bearer "+token, "X-Varve-Session", header)
			if got.Code != http.StatusForbidden || strings.Contains(got.Body.String(), secret) {
				t.Errorf("%s of %s: %d %s", path, id, got.Code, got.Body)
			}
		}
	}
	for name, as := range map[string]bearer{"another session": {token: token, session: "other"}, "none": {}, "a foreign origin": {token: token, origin: "https://evil.example"}} {
		if held, err := dial(t, w.serve(t), versions[0], as); err == nil {
			_, err = held.ListTools(t.Context(), &mcp.ListToolsParams{})
			if err == nil {
				t.Errorf("%s is let in", name)
			}
		}
	}
}
