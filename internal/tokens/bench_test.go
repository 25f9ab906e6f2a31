package tokens_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tokens"
)

// BenchmarkEstimate shows the speed over text, over the literal that a message holds of it, and beside that of
// json.Valid.
func BenchmarkEstimate(b *testing.B) {
	for name, page := range map[string]string{"English": english, "code": code, "Chinese": chinese, "JSON": jsonText} {
		text := []byte(strings.Repeat(page, 50))
		literal := rawjson.Quote(nil, text)
		for _, c := range []struct {
			of   string
			data []byte
			run  func([]byte)
		}{
			{"text", text, func(data []byte) { tokens.Estimate(data) }},
			{"literal", literal, func(data []byte) { tokens.EstimateLiteral(data) }},
			{"json.Valid", literal, func(data []byte) { json.Valid(data) }},
		} {
			b.Run(name+"/"+c.of, func(b *testing.B) {
				b.SetBytes(int64(len(c.data)))
				for b.Loop() {
					c.run(c.data)
				}
			})
		}
	}
}

func BenchmarkCount(b *testing.B) {
	for name, text := range map[string]string{"English": strings.Repeat(english, 50), "one letter": strings.Repeat("a", 200_000)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				count(b, "o200k", text)
			}
		})
	}
}
