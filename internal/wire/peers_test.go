package wire

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/test/peers"
)

// TestViewsOfAllFixturesKeepTheRulesOfOthers renders each list of the fixtures in each format for models of eight
// providers, and holds it to the schemas that providers publish and the packages that send views to them.
func TestViewsOfAllFixturesKeepTheRulesOfOthers(t *testing.T) {
	t.Parallel()
	s := peers.NewSuite(t)
	for _, f := range session.Formats() {
		for _, x := range fixtures[f] {
			if len(x.bodies) > 1000 {
				continue // they are about the number alone
			}
			for _, target := range session.Formats() {
				for _, model := range peers.Models {
					for _, pending := range []Pending{KeepPending, SynthesizePending, DropPending} {
						made := rendered(target, storedAs(f, x.bodies), Options{Model: model, Pending: pending})
						s.Check(string(f)+"/"+x.rule+": "+x.name, peers.ViewOf(string(target), model, made.Bodies, made.System, pending == KeepPending))
					}
				}
			}
		}
	}
	s.Report()
}
