package compactor

import "github.com/varve-dev/varve/internal/postgres"

// How much memory a proposal takes, by estimate: for each byte of a window and of the rendition that it is joined to,
// and for each message beside its bytes. Of the bytes, about half are garbage that was not collected yet.
const (
	memoryPerByte    = 5
	livePerByte      = 3
	memoryPerMessage = 4 << 10
)

// bytesPerToken is how many bytes of text a token has at most, by estimate.
const bytesPerToken = 8

// Memory returns about how many bytes of memory Propose takes for a session of this weight, whose log is taken in
// by windows of this number of bytes.
func Memory(w postgres.Weight, window int64) int64 {
	read := min(w.Tail, window)
	messages := w.Messages
	if w.Tail > window {
		messages = messages * window / w.Tail
	}
	return memoryPerByte*(rendition(w, read)+read) + memoryPerMessage*messages
}

// rendition returns about how many bytes the rendition has at most that a window is joined to: what there is besides
// the window, as far as the policy lets the view keep it.
func rendition(w postgres.Weight, read int64) int64 {
	made := w.Tail - read
	if w.Media > 0 {
		made = min(made, w.Media+bytesPerToken*w.Window)
	}
	return max(w.Checkpoint, made)
}

// WindowWithin returns the window of a compaction that has so much memory, beside the rendition of a session with
// pictures. A message may be larger than the smallest window, and is then one of its own.
func WindowWithin(memory int64) int64 {
	const smallest, usualRendition = 1 << 20, 10 << 20
	both := memory / memoryPerByte
	return min(DefaultWindow, max(smallest, both/4, both-usualRendition))
}

// RoomWithin returns how many bytes a window and the rendition before it may have together in so much memory. Without
// room for a usual rendition, no session with pictures would be compacted.
func RoomWithin(memory int64) int64 {
	const usual = 16 << 20
	return max(memory/livePerByte, usual)
}
