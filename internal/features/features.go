// Package features lists the features that the processes run.
package features

import (
	"github.com/varve-dev/varve/internal/console"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/imports"
	"github.com/varve-dev/varve/internal/recompact"
	"github.com/varve-dev/varve/internal/replays"
	"github.com/varve-dev/varve/internal/search"
	"github.com/varve-dev/varve/internal/upload"
	"github.com/varve-dev/varve/internal/webhook"
)

// All returns all features.
func All() []feature.Feature {
	return []feature.Feature{
		console.Feature(),
		imports.Feature(),
		recompact.Feature(),
		replays.Feature(),
		search.Feature(),
		upload.Feature(),
		webhook.Feature(),
	}
}
