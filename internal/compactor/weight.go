package compactor

import "github.com/varve-dev/varve/internal/postgres"

// How much memory a proposal takes, by estimate: for each byte of a window and of the rendition that it is joined to,
// and for each message beside its bytes.
const (
	memoryPerByte    = 6
	memoryPerMessage = 4 << 10
)

// Memory returns about how many bytes of memory Propose takes for a session of this weight, whose log is taken in
// by windows of this number of bytes.
func Memory(w postgres.Weight, window int64) int64 {
	read := min(w.Tail, window)
	messages := w.Messages
	if w.Tail > window {
		messages = messages * window / w.Tail
	}
	return memoryPerByte*(w.Checkpoint+read) + memoryPerMessage*messages
}

// WindowWithin returns the window of a compaction that has so much memory. A message may be larger than the smallest
// window, and is then one of its own.
func WindowWithin(memory int64) int64 {
	const smallest, beside = 1 << 20, 2 // beside the window there is the rendition
	return min(DefaultWindow, max(smallest, memory/memoryPerByte/beside))
}
