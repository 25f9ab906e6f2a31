package resource

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// body returns n characters of a key, the last four of them "zzzz".
func body(n int) string { return strings.Repeat("A1b2", n)[:n-4] + "zzzz" }

func TestMaskHidesSecretsExceptTheirLastFourCharacters(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0a1b2c3d", 8)
	for text, want := range map[string]string{
		"id AKIAIOSFODNN7EXAMPLE.":        "id ***MPLE.",
		"ghp_" + body(36):                 "******zzzz",
		"x=github_pat_" + body(82):        "x=*********zzzz",
		"glpat-" + body(20):               "***zzzz",
		"sk-ant-api03-" + body(90):        "*********zzzz",
		"sk-proj-" + body(150) + " and":   "************zzzz and",
		"sk-" + body(48):                  "******zzzz",
		"sk_live_" + body(24):             "******zzzz",
		"AIza" + body(35):                 "******zzzz",
		"xoxb-123456789012-" + body(24):   "******zzzz",
		`{"a":"x\nghp_` + body(36) + `"}`: `{"a":"x\n******zzzz"}`,
		"-----BEGIN PRIVATE KEY-----" + strings.Repeat("é", 9) + "€": "-----BEGIN PRIVATE KEY-----***€",
		"npm_" + body(36):                   "******zzzz",
		"shpat_" + hex[:32]:                 "******2c3d",
		"SK" + hex[:32]:                     "******2c3d",
		"dop_v1_" + hex:                     "*********2c3d",
		"hf_" + strings.Repeat("abcDEF", 6): "******cDEF",
		"key https://hooks.slack.com/services/T00000000/B00000000/" + body(24):                   "key https://hooks.slack.com/services/******zzzz",
		"Authorization: Bearer abc.def1234567890":                                                "Authorization: Bearer ***7890",
		"postgres://varve:hunter2@db:5432/x":                                                     "postgres://varve:***@db:5432/x",
		"redis://:" + body(20) + "@cache":                                                        "redis://:***zzzz@cache",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N":                        "******0w5N",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----\nmore": "-----BEGIN RSA PRIVATE KEY-----***QEA\n-----END RSA PRIVATE KEY-----\nmore",
		"-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA":                                          "-----BEGIN PRIVATE KEY-----***AQEA",
	} {
		if got := Mask(text); got != want {
			t.Errorf("Mask(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestEveryRuleHidesItsSecrets(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range rules() {
		var characters []byte
		for b, in := range k.body {
			if in {
				characters = append(characters, byte(b))
			}
		}
		if k.secret != nil && !strings.HasSuffix(k.prefix, "=") {
			continue // the test above has these
		}
		for range 10 {
			secret := ""
			for range k.atLeast + rng.IntN(20) {
				secret += string(characters[rng.IntN(len(characters))])
			}
			text := "key: " + k.prefix + secret + "\n"
			if masked := Mask(text); strings.Contains(masked, secret[:len(secret)-4]) {
				t.Errorf("Mask(%q) = %q", text, masked)
			}
		}
	}
}

func TestMaskKeepsOtherText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "a", "disk-usage", "task_live_in_it", "the key-value store of sk-learn", "AKIA", "ghp_short", "secret_santa",
		"https://example.com:443/a@b", "http://user@host/", "Bearer responsibilities", "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEA\n", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----",
		"my_ghp_" + body(36) + "_in_a_word", "eyJhbGciOiJIUzI1NiJ9 is half a token", "/home/user/project/config.py", "日本語 😀",
	} {
		if got := Mask(text); got != text {
			t.Errorf("Mask(%q) = %q", text, got)
		}
	}
}

// FuzzMask checks that Mask hides a separate secret whatever surrounds it, keeps other text valid, and adds little.
func FuzzMask(f *testing.F) {
	f.Add("Bearer "+body(20), "")
	f.Add("://a:b@c://d:e@f", "@")
	f.Add("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
	f.Add(strings.Repeat("eyJ-", 100), "x")
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + " ghp_" + body(36) + " " + after
		masked := Mask(text)
		if strings.Contains(masked, body(36)) {
			t.Errorf("Mask(%q) = %q", text, masked)
		}
		if utf8.ValidString(text) && !utf8.ValidString(masked) {
			t.Errorf("Mask(%q) = %q, which is no UTF-8", text, masked)
		}
		if len(masked) > len(text)+2*strings.Count(text, "@") {
			t.Errorf("Mask(%q) = %q, which is longer", text, masked)
		}
	})
}

func BenchmarkMaskCleanText(b *testing.B) {
	text := strings.Repeat("\tif err := store.Append(ctx, ref, messages); err != nil { // see https://example.com/skip-key\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Mask(text) != text {
			b.Fatal("clean text was masked")
		}
	}
}
