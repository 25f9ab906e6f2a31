package wire

import (
	"context"

	"github.com/varve-dev/varve/internal/session"
)

// rendered and validated are for tests that never leave before the end, as package wiretest is for those
// of other packages.
func rendered(target session.Format, view []Stored, o Options) *Rendition {
	made, _ := Render(context.Background(), target, view, o)
	return made
}

func validated(f session.Format, bodies [][]byte, o Options) []Violation {
	found, _ := Validate(context.Background(), f, bodies, o)
	return found
}
