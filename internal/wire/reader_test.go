package wire_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// TestAReaderFindsWhatInspectFound: the same parts with the same tokens.
func TestAReaderFindsWhatInspectFound(t *testing.T) {
	t.Parallel()
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	for _, f := range session.Formats() {
		for seed := range seeds {
			var reader wire.Reader
			bodies := compacttest.Session(rand.New(rand.NewPCG(seed, 7)), f, compacttest.Options{Messages: 30, ResultTokens: 40, Wild: true})
			var want, got []wire.Facts
			for _, body := range bodies {
				inspected, err := wire.Inspect(f, body)
				if err != nil {
					t.Fatal(err)
				}
				read, err := reader.Read(f, body, inspected.Tokens)
				if err != nil {
					t.Fatal(err)
				}
				// A reader need not know what only appends assess: the last is the sum of names.
				const unread = wire.FlagEmpty | wire.FlagAssessed | wire.FlagMayNeedRepair | wire.FlagUnsigned | wire.FlagMixed | 0x7FFF<<16
				inspected.Flags, read.Flags = inspected.Flags&^unread, read.Flags&^unread
				want, got = append(want, inspected), append(got, read)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s, seed %d (-inspected +read):\n%s", f, seed, diff)
			}
		}
	}
}
