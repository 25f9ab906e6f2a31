package persist_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
)

// BenchmarkLinesInTheMiddle reads the chunk with 200 lines in the middle of a body: what comes after it is the same for
// both sizes. The larger body must not need more than 1.5 times the time.
func BenchmarkLinesInTheMiddle(b *testing.B) {
	w := newWorld(b, persist.Postgres)
	for name, size := range map[string]int{"100kB": 100_000, "10MB": 10 << 20} {
		r := result(int64(size), 0, logLines(size))
		if _, err := w.store.PutResults(b.Context(), w.key, []persist.NewResult{r}); err != nil {
			b.Fatal(err)
		}
		ref, err := session.ParseResultRef(r.Ref)
		if err != nil {
			b.Fatal(err)
		}
		line := persist.ContentOf(r.Body).Lines() / 2
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, c, err := w.store.OpenResultAt(b.Context(), w.at, ref, persist.Want{FromLine: line, LastLine: line + 199})
				if err != nil {
					b.Fatal(err)
				}
				for i := c.AtLine(line); i <= c.AtLine(line+199); i++ {
					if _, err := c.Chunk(b.Context(), i); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
