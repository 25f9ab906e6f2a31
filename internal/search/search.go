// Package search is a feature: it finds words in all messages and uploaded results of a tenant. A worker indexes which
// words they have, when a session rests; a search reads the texts that may have its words from the log, and the newest
// ones that are not indexed yet.
//
// Start at Feature. http.go has the routes, find.go what a request asks, passages.go what it reads, words.go what the
// index has of it, job.go the job, index.go and uploads.go what it indexes, and store.go and
// the other store files their SQL. Its tables are search_settings, search_sessions, which says how far each session is
// indexed, and search_blocks, the index.
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
