package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// TestAReceiptIsVerifiedOnTheCommandLine erases a subject, and reads the receipt with the command, also alone, and a file that is not a receipt.
func TestAReceiptIsVerifiedOnTheCommandLine(t *testing.T) {
	t.Parallel()
	u, _ := shareUp(t)
	out, code := u.exits("erasures", "start", "--metadata", "user_id=u1", "--yes", "--json", "--key", u.key)
	var erasure session.Erasure
	if err := json.Unmarshal([]byte(out), &erasure); err != nil || code != 0 {
		t.Fatalf("%d %s: %v", code, out, err)
	}
	id := erasure.ID.String()
	for end := time.Now().Add(10 * time.Minute); erasure.State != session.ErasureDone; time.Sleep(50 * time.Millisecond) {
		out, _ = u.exits("erasures", "show", id, "--key", u.key)
		if err := json.Unmarshal([]byte(out), &erasure); err != nil || time.Now().After(end) {
			t.Fatalf("%s: %v", out, err)
		}
	}
	if out, code := u.exits("erasures", "list", "--key", u.key); code != 0 || !strings.Contains(out, id) {
		t.Errorf("%d %s", code, out)
	}
	file := filepath.Join(t.TempDir(), "receipt.json")
	alone, err := json.Marshal(erasure.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{out: 0, string(alone): 0, `{"receipt":null}`: exitFindings, "x": exitUnverified} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, code := u.exits("verify", "--receipt", file); code != want || code == 0 && !strings.Contains(said, id) {
			t.Errorf("%.60s…: exit code %d, want %d: %s", text, code, want, said)
		}
	}
}
