// Package recompact is a feature: many sessions of a tenant, or of many tenants, are compacted anew from their logs,
// and rolled back to what they served before.
//
// Start at Feature. http.go and http_groups.go have the routes, body.go what begins a recompaction, store.go,
// store_sessions.go and store_groups.go what is stored, control.go pauses and cancels, pace.go says when sessions may
// begin, job.go and job_rollback.go are the jobs, and command.go has the commands. Its tables are recompactions and
// recompaction_sessions.
package recompact

import (
	_ "embed"

	"github.com/varve-dev/varve/internal/feature"
)

//go:embed openapi.yaml
var description []byte

//go:embed examples.txt
var examples string

// Feature returns what the processes run of recompactions.
func Feature() feature.Feature {
	return feature.Feature{
		Description: description, Routes: routes, Command: newCommands(), Examples: examples, Jobs: jobs,
	}
}
