package resource

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// secretKinds returns texts with a secret each, by what kind it is: the secret, and the text around it with # in its
// place.
func secretKinds(t *testing.T) map[string][2]string {
	t.Helper()
	kinds := map[string][2]string{}
	data, err := os.ReadFile("testdata/secrets.json")
	if err == nil {
		err = json.Unmarshal(data, &kinds)
	}
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func TestSecretsAreKnownByTheirNames(t *testing.T) {
	t.Parallel()
	for kind, c := range secretKinds(t) {
		secret, text := c[0], strings.ReplaceAll(c[1], "#", c[0])
		masked := Mask(text)
		if strings.Contains(masked, secret) || strings.Contains(masked, secret[:len(secret)-4]) {
			t.Errorf("%s: %q", kind, masked)
		}
		if around := strings.SplitN(c[1], "#", 2)[0]; !strings.HasPrefix(masked, around[:min(len(around), 8)]) {
			t.Errorf("%s: what is before the secret is masked, too: %q", kind, masked)
		}
	}
}

// TestSecretsAreKnownInsideJSON looks at arguments: a string of a string.
func TestSecretsAreKnownInsideJSON(t *testing.T) {
	t.Parallel()
	for kind, c := range secretKinds(t) {
		text := strings.ReplaceAll(c[1], "#", c[0])
		for depth := range 2 {
			literal, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(literal)
			if masked := Mask(text); strings.Contains(masked, c[0]) && !strings.Contains(c[0], "&") {
				t.Errorf("%s, %d deep: %s", kind, depth+1, masked)
			}
			text = `{"command":` + text + `}`
		}
	}
}

func TestNamesAreNotEnough(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"password = getPassword()", "password: string", `"password": "Passwort"`, "if password == hash2 {", "DB_PASSWORD=$DB_PASSWORD",
		"PASSWORD=${PASSWORD:-x1}", "password: {{ .Values.db.password }}", `password: "<your password 1>"`, `type="password" name="user1"`,
		"token := tokens[i]", "token = lexer.next_token()", "total_tokens: 12345678901234567890", "max_tokens=4096", "nextPageToken: 8f14e45fceea167a5a36dedd4bea2543",
		"api_key = os.environ['OPENAI_API_KEY']", "apiKey: process.env.API_KEY_2", "key: 8f14e45fceea167a5a36dedd4bea2543", "commit: 8f14e45fceea167a5a36dedd4bea2543",
		"docker run -u 1000:1000 image", "chown www:data2 x", "src/main.go:12:3:7: undefined", "12:30:45:59:61", "http://localhost:8080/x?secret=no",
		"basic responsibilities", "the password reset mail", "--password-file /run/secrets/db1", "--tokenizer o200k_base_for_models", "Cookie: none",
		"secret: /run/secrets/db1", "a = b", "a: b", "author: someone", `"auth": "required"`, "password:\n  type: string", "Set-Cookie header",
	} {
		if got := Mask(text); got != text {
			t.Errorf("Mask(%q) = %q", text, got)
		}
	}
}

func TestMaskTakesAsLongAsItsTextIs(t *testing.T) {
	for _, text := range []string{"password=", "a:b:c:d:", "--token ", "login password ", "-u a:", "token: a1", "= ", "::"} {
		few := testing.AllocsPerRun(1, func() { Mask(strings.Repeat(text, 1000)) })
		many := testing.AllocsPerRun(1, func() { Mask(strings.Repeat(text, 10_000)) })
		if many > 12*few+100 {
			t.Errorf("%q: %.0f allocations, %.0f for a tenth", text, many, few)
		}
	}
}

// TestAnyTextIsMasked puts what rules look for together at random, and cuts it anywhere.
func TestAnyTextIsMasked(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"password", "Authorization", "Token", "bot", "--", "-u", "=", ":", " ", "\n", "\\", "\\u003e", "\"", "5432", "*", "/", ".",
		"Basic ", "Bearer ", "sshpass -p", "login ", "MT", "eyJ", "12345678", "AA", "://", "@", "é", strings.Repeat("token", 13),
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		text := ""
		for range 1 + rng.IntN(9) {
			text += pieces[rng.IntN(len(pieces))]
		}
		text = text[:rng.IntN(len(text)+1)]
		if masked := string(MaskBytes([]byte(text))); masked != Mask(text) {
			t.Fatalf("Mask(%q) = %q, of bytes %q", text, Mask(text), masked)
		}
	}
}

// TestLongRunsAreReadOnce has texts that took the square of their length, which are minutes.
func TestLongRunsAreReadOnce(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"-", "MT-", "MT.", "--a", "eyJ "} {
		if text := strings.Repeat(piece, 1<<20/len(piece)); Mask(text) != text {
			t.Errorf("%q has secrets", piece)
		}
	}
}

func BenchmarkMaskSeparators(b *testing.B) {
	text := strings.Repeat("password=", 10_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Mask(text)
	}
}
