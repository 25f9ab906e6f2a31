package text_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/text"
)

// listing is what a tool often prints, in ASCII and in another script.
var listing = map[string][]byte{
	"ascii":   []byte(strings.Repeat("-rw-r--r--  1 root root   4096 Jan  1 00:00 internal/session/session.go\n", 2000)),
	"chinese": []byte(strings.Repeat("会话的每一条消息都按原样保存，  摘要只替换视图中的内容。\n", 2000)),
}

func BenchmarkLen(b *testing.B) {
	for name, whole := range listing {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(whole)))
			for b.Loop() {
				text.Len(whole)
			}
		})
	}
}

func BenchmarkFirst(b *testing.B) {
	for name, whole := range listing {
		n := text.Len(whole) / 3
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(whole)))
			b.ReportAllocs()
			for b.Loop() {
				text.First(whole, n)
			}
		})
	}
}

func BenchmarkCollapse(b *testing.B) {
	for name, whole := range listing {
		dst := make([]byte, 0, len(whole))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(whole)))
			b.ReportAllocs()
			for b.Loop() {
				text.Collapse(dst, whole)
			}
		})
	}
}

func BenchmarkClipLines(b *testing.B) {
	for name, whole := range listing {
		dst := make([]byte, 0, len(whole))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(whole)))
			b.ReportAllocs()
			for b.Loop() {
				text.ClipLines(dst, whole, 128)
			}
		})
	}
}

func BenchmarkTemplateAppend(b *testing.B) {
	template, err := text.Parse("[Tool result trimmed -- {tool}: \"{preview}\" -- read_result {ref} returns it]", "tool", "preview", "ref")
	if err != nil {
		b.Fatal(err)
	}
	value := func(dst []byte, name string) []byte { return append(dst, name...) }
	dst := template.Append(nil, value)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = template.Append(dst[:0], value)
	}
}
