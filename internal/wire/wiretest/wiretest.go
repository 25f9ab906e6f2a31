// Package wiretest has what package wire does with whole views for tests, which never leave before the end: without a
// context, and without its error. It owns no tables.
package wiretest

import (
	"context"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// Render returns what wire.Render does.
func Render(target session.Format, view []wire.Stored, o wire.Options) *wire.Rendition {
	made, _ := wire.Render(context.Background(), target, view, o)
	return made
}

// Translate returns the messages that wire.Translate writes.
func Translate(target session.Format, run []wire.Stored) []wire.Stored {
	translated, _ := wire.Translate(context.Background(), target, run)
	list := make([]wire.Stored, len(translated))
	for i := range translated {
		list[i] = translated[i].Stored
	}
	return list
}

// Validate returns what wire.Validate does.
func Validate(f session.Format, bodies [][]byte, o wire.Options) []wire.Violation {
	found, _ := wire.Validate(context.Background(), f, bodies, o)
	return found
}
