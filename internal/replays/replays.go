// Package replays is a feature: policies are measured over a tenant's stored sessions, or over a folder of
// conversations. What is measured of a session, and how, is in package replay.
//
// Start at Feature. http.go has the routes, body.go what begins a replay, store.go what the routes store, job.go the
// job that measures, store_work.go its SQL, command.go the commands, and folder.go the one that needs no server. Its
// tables are replays, replay_sessions, the sample, and replay_outcomes, what was measured.
package replays

import (
	_ "embed"
	"errors"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/feature"
)

//go:embed openapi.yaml
var description []byte

//go:embed examples.txt
var examples string

// errLive reports that a tenant has a replay that has not ended.
var errLive = errors.New("another replay of the tenant has not ended")

// Feature returns what the processes run of replays.
func Feature() feature.Feature { return sliced(0) }

// sliced returns the feature with another slice of time for each job.
func sliced(slice time.Duration) feature.Feature {
	return feature.Feature{
		Description: description,
		Routes:      routes,
		Command:     &commands{},
		Examples:    examples,
		Jobs:        jobs(slice),
		Errors: []feature.Error{{
			Is: errLive, Code: "replay_live", Status: http.StatusConflict,
			Detail: "the tenant has a replay that has not ended: wait for its end, or cancel it; GET " +
				"/v1/admin/replays lists it first",
		}},
	}
}
