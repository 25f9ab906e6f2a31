package replay

// index is what is known of a session before it is replayed.
type index struct{}
