package recompact

import "github.com/varve-dev/varve/internal/postgres"

// Store has the SQL of recompactions.
type Store = store

// NewStore returns the SQL of recompactions on a store.
func NewStore(s *postgres.Store) Store { return store{s} }

// ListSQL lists recompactions.
var ListSQL = listSQL
