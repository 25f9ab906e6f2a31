package session

import "time"

// How many uploads of results a session may have, and for how long.
const (
	MaxUploads     = 32             // that have not ended
	UploadLifetime = 24 * time.Hour // of one that has not ended, after its last bytes
)
