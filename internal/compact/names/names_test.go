package names

import (
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see /home/me/repo/src/main.go:12:3 and README.md.":    "src/main.go README.md",
		"read/write the and/or of it, well-known non-trivial":  "",
		"call parseRef() or snake_case, os.path.join(x)":       "parseRef snake_case os.path.join",
		"commit a1b2c3d4e5, ticket ABC-123, run 12":            "a1b2c3d4e5 ABC-123",
		"port 48213, max_retries=17 and timeout: 30":           "port 48213 max_retries max_retries=17 timeout: 30",
		"https://example.org/team/repo/pull/169":               "pull/169",
		"an ordinary sentence, with words. And numbers 7 42":   "",
		"on 127.0.0.1:48213, localhost:8080, example.com:443":  "127.0.0.1:48213 localhost:8080 example.com:443",
		"key 8fK2mZq9LxT4vB7nWc3RyPd src/aGVsbG8gd29ybGQxMjM0": "",
		"a.go-12-x 12:func src/b.go:7: //go:build drwxr-xr-x":  "a.go-12-x src/b.go go:build",
		"order 2026-11-22 at 10:31:12 of 1234567":              "order 2026-11-22 1234567",
	} {
		var got []string
		for name := range Scan([]byte(text), false) {
			got = append(got, string(name.Text))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}
