package compactor

import "github.com/varve-dev/varve/internal/postgres"

// How much memory a proposal takes at most, measured by TestMemoryOfAProposal: for each byte of what it reads, whatever
// the messages are, and for each message beside its bytes.
const (
	memoryPerByte    = 6
	memoryPerMessage = 4 << 10
)

// Memory returns how many bytes of memory Propose takes at most for a session that weighs so much.
func Memory(w postgres.Weight) int64 {
	return memoryPerByte*(w.Checkpoint+w.Tail) + memoryPerMessage*w.Messages
}
