package protocol

import (
	"encoding/json"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/session"
)

// CheckpointDetail is a checkpoint with its loss manifest.
type CheckpointDetail struct {
	session.CheckpointRecord
	Policy    json.RawMessage `json:"policy"`
	Units     int             `json:"units"`
	OpenCalls int             `json:"open_calls"`
	Manifest  Manifest        `json:"manifest"`
}

// Manifest is a loss manifest. Its tokens are those of the messages that the checkpoint covers. TokensSaved is before
// less after, the sum of the stages and the sum of the entries.
type Manifest struct {
	Of           string              `json:"of"` // own or all
	TokensBefore int64               `json:"tokens_before"`
	TokensAfter  int64               `json:"tokens_after"`
	TokensSaved  int64               `json:"tokens_saved"`
	Stages       []manifest.StageSum `json:"stages"`
	Entries      []ManifestEntry     `json:"entries"`
}

// ManifestEntry is an entry of a manifest and the request that reads what it removed.
type ManifestEntry struct {
	manifest.Entry
	ReadBack string `json:"read_back"`
}

// CheckpointDiff lists what differs between the views of two checkpoints. The tokens of To are those of From, plus
// TokensCovered, plus TokensChanged.
type CheckpointDiff struct {
	From          CheckpointSide    `json:"from"`
	To            CheckpointSide    `json:"to"`
	TokensCovered int64             `json:"tokens_covered"` // of messages that only one of them covers
	TokensChanged int64             `json:"tokens_changed"`
	Changes       []manifest.Change `json:"changes"`
}

// CheckpointSide is one of two checkpoints that are compared.
type CheckpointSide struct {
	N       int   `json:"n"`
	Through int64 `json:"through_seq"`
	Tokens  int64 `json:"tokens"`
}
