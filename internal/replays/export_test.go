package replays

import "github.com/varve-dev/varve/internal/postgres"

// Store has the SQL of replays.
type Store = store

// NewStore returns the SQL of replays on a store.
func NewStore(s *postgres.Store) Store { return store{s} }

// Sliced returns the feature with another slice of time for each job.
var Sliced = sliced

// ErrLive reports that a tenant has a replay that has not ended.
var ErrLive = errLive

// The statements that read one replay, and a list.
var (
	ReadSQL = readSQL
	ListSQL = listSQL
)
