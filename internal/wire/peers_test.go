package wire

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/test/peers"
)

// TestViewsOfAllFixturesKeepTheRulesOfOthers renders each list of the fixtures in each format for models of eight
// providers, and holds it to the schemas that providers publish and the packages that send views to them; each eighth
// with -short.
func TestViewsOfAllFixturesKeepTheRulesOfOthers(t *testing.T) {
	t.Parallel()
	s, n, each := peers.NewSuite(t), 0, 1
	if testing.Short() {
		each = 113 // which comes by every format, target and way with pending calls
	}
	for _, f := range session.Formats() {
		for _, x := range fixtures[f] {
			if len(x.bodies) > longList {
				continue // they are about the number alone
			}
			for _, target := range session.Formats() {
				for _, pending := range []Pending{SynthesizePending, DropPending, KeepPending} {
					if n++; n%each > 0 {
						continue
					}
					s.CheckEach(string(f)+"/"+x.rule+": "+x.name, string(target), peers.Models, pending == KeepPending, func(model string) ([][]byte, int) {
						made := rendered(target, storedAs(f, x.bodies), Options{Model: model, Pending: pending})
						return made.Bodies, made.System
					})
				}
			}
		}
	}
	s.Report()
}
