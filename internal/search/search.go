// Package search is a feature: it finds words in all messages and uploaded results of a tenant. A worker indexes what
// was stored, behind the appends; what a search finds is read again from the log.
//
// Start at Feature. http.go has the routes, find.go what a request asks, job.go the job, index.go and uploads.go what
// it indexes, and store.go, store_index.go and store_uploads.go their SQL. Its tables are search_settings,
// search_sessions, which says how far each session is indexed, and search_texts, the index.
package search

import (
	_ "embed"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
)

//go:embed openapi.yaml
var description []byte

//go:embed examples.txt
var examples string

// Feature returns what the processes run of the search.
func Feature() feature.Feature {
	return feature.Feature{
		Description: description,
		Routes:      routes,
		Command:     &commands{},
		Examples:    examples,
		Jobs:        jobs,
		Follower:    &postgres.Follower{Behind: isBehind, Changed: markBehind},
	}
}
