// Package console is a feature: pages on which people see sessions, what left their views and why.
//
// Start at Feature and at routes in site.go. A page asks the API in this process, as the holder of the key who signed
// in (ask.go, ADR 104): scopes, quotas, limits and rows of the audit trail are the API's, and there is no SQL here. One
// file has one page, with the struct that its template in pages/ shows. align.go puts the log and the view side by
// side. What leaves goes through shown (text.go), which makes control characters visible. The package owns no tables.
package console

import (
	"embed"

	"github.com/varve-dev/varve/internal/feature"
)

// root is where the site is.
const root = "/console"

//go:embed pages static
var files embed.FS

// Feature returns what the processes run of the console.
func Feature() feature.Feature {
	return feature.Feature{Site: &feature.Site{Path: root, Open: open}}
}
