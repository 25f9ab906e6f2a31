package compacttest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

func TestPlainSessionsBreakNoRule(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%s %d", f, seed), func(t *testing.T) {
				t.Parallel()
				options := Options{Messages: 100}
				bodies := Session(rand.New(rand.NewPCG(seed, 0)), f, options)
				asked := wire.Options{}
				if f == session.Gemini {
					asked.Model = "gemini-2.5-pro" // which does not ask for signatures of calls
				}
				if violations := wiretest.Validate(f, bodies, asked); len(violations) > 0 {
					t.Errorf("violations: %v", violations)
				}
				if !reflect.DeepEqual(bodies, Session(rand.New(rand.NewPCG(seed, 0)), f, options)) {
					t.Error("the same seed makes another session")
				}
			})
		}
	}
}
