package persist_test

import (
	"bytes"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// logLines returns lines that are the same at every call, up to 20 MiB.
func logLines(size int) []byte { return slices.Clone(allLines()[:size]) }

var allLines = sync.OnceValue(func() []byte {
	line := []byte("2026-01-31T00:00:00Z INFO request done path=/v1/things status=200 id=")
	const size = 20 << 20
	var out bytes.Buffer
	for n := uint32(1); out.Len() < size; n = n*1664525 + 1013904223 {
		out.Write(line)
		out.WriteString(uuid.NewSHA1(uuid.Nil, []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}).String())
		out.WriteByte('\n')
	}
	return out.Bytes()[:size]
})
