package names

import (
	"bytes"
	"testing"
)

// BenchmarkScan finds the names of an ordinary result.
func BenchmarkScan(b *testing.B) {
	text := bytes.Repeat([]byte(`{"path":"/home/me/src/main.go","text":"func parseRef(s string) (Ref, error) {\n\treturn `+
		`Ref{}, fmt.Errorf(\"port %d of max_retries=17\", 48213)\n}\nan ordinary sentence about nothing at all."}`), 400)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for range Scan(text, true) { //nolint:revive // the scan alone is measured
		}
	}
}
