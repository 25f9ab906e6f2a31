package verify

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Kind says what a finding is about.
type Kind string

// The kinds of findings.
const (
	Message    Kind = "message"         // a message's bytes are not those that came in
	Missing    Kind = "missing_message" // the log has no message with a seq that one had
	Extra      Kind = "extra_message"   // a message that the session does not count
	Columns    Kind = "columns"         // what was extracted from a message is not what is in it
	ViewBody   Kind = "view_body"       // what views show of a message is damaged
	Counter    Kind = "counter"         // a number of the session's row is not that of its log
	Lost       Kind = "missing_checkpoint"
	Checkpoint Kind = "checkpoint" // a checkpoint's body
	State      Kind = "state"      // what the next compaction must know of it
	Units      Kind = "units"      // where its units are
	Validator  Kind = "validator_state"
	Coverage   Kind = "coverage" // it does not stand for the messages that it says it does
	Manifest   Kind = "manifest"
	Ref        Kind = "ref"     // a ref that brings nothing back
	Result     Kind = "result"  // a result's body
	Chunk      Kind = "chunk"   // a piece of a result's body
	Pack       Kind = "pack"    // messages that were compressed together
	Hole       Kind = "hole"    // a message in a pack that cannot be filled
	Orphan     Kind = "orphan"  // rows or objects that nothing names
	View       Kind = "view"    // no valid view can be made
	Archive    Kind = "archive" // what an archived session must be restored from
	Audit      Kind = "audit"   // the audit trail is not as it was written
)

// Finding is one thing that is wrong: where, what it means for readers, and what to do.
type Finding struct {
	Kind       Kind      `json:"kind"`
	Tenant     uuid.UUID `json:"tenant"`
	Session    string    `json:"session,omitempty"`
	Row        int64     `json:"row,omitempty"` // of the audit trail
	Key        uuid.UUID `json:"key,omitzero"`  // of the session
	Seq        int64     `json:"seq,omitempty"`
	LastSeq    int64     `json:"last_seq,omitempty"` // of several messages
	Ref        string    `json:"ref,omitempty"`
	Checkpoint int       `json:"checkpoint,omitempty"`
	Name       string    `json:"name,omitempty"` // of a counter, a column, a table
	What       string    `json:"what"`
	Means      string    `json:"means"`
	Do         string    `json:"do"`
	Repaired   string    `json:"repaired,omitempty"` // what --repair did
	Unrepaired string    `json:"unrepaired,omitempty"`

	body uuid.UUID // of the result
}

// place is what makes two findings the same one when a session is looked at again.
type place struct {
	kind       Kind
	key        uuid.UUID
	seq        int64
	ref        string
	checkpoint int
	name       string
}

func (f *Finding) place() place { return place{f.Kind, f.Key, f.Seq, f.Ref, f.Checkpoint, f.Name} }

// Where names the place of a finding inside its session.
func (f *Finding) Where() string {
	var parts []string
	if f.Checkpoint > 0 {
		parts = append(parts, fmt.Sprintf("checkpoint %d", f.Checkpoint))
	}
	switch {
	case f.LastSeq > f.Seq:
		parts = append(parts, fmt.Sprintf("messages %d to %d", f.Seq, f.LastSeq))
	case f.Seq > 0:
		parts = append(parts, fmt.Sprintf("message %d", f.Seq))
	}
	if f.Ref != "" {
		parts = append(parts, f.Ref)
	}
	if f.Name != "" {
		parts = append(parts, f.Name)
	}
	if f.Row > 0 {
		parts = append(parts, fmt.Sprintf("row %d", f.Row))
	}
	return strings.Join(parts, ", ")
}

// advice is what a kind of finding means for readers, and what to do about it.
type advice struct{ means, do string }

const (
	restoreLog  = "nothing can rebuild the log: restore the session from a backup or an export"
	repairIt    = "varve verify --repair"
	recompactIt = "varve verify --repair makes a new checkpoint from the log"
)

var advices = map[Kind]advice{
	Message: {"reading the message answers 500 damaged; what a checkpoint shows of it stays readable", restoreLog},
	Missing: {"the log, exports and recompactions do without the message", restoreLog},
	Extra:   {"no view shows the message; the next append takes its seq and fails", restoreLog},
	Columns: {"views may be repaired needlessly, or not where they must be; counters may be wrong", repairIt},
	ViewBody: {"views that show the message are damaged; the log has it whole",
		recompactIt + ", once it covers the message"},
	Counter:    {"the session is compacted too early or too late, or its view misses messages", repairIt},
	Lost:       {"it cannot be shown or restored; manifests that build on it are incomplete", recompactIt},
	Checkpoint: {"reads fall back to an older checkpoint or to the log, and are marked degraded", recompactIt},
	State:      {"the next compaction starts from the log", recompactIt},
	Units:      {"bounded views and previews of it fail", recompactIt},
	Validator:  {"views may be sent unrepaired that their provider refuses", repairIt},
	Coverage:   {"the view shows messages twice or not at all", recompactIt},
	Manifest:   {"what left the view cannot be listed; refs in the view still work", recompactIt},
	Ref:        {"a model that reads the ref gets 404", repairIt},
	Result:     {"reading the result answers 500 damaged", repairIt},
	Chunk:      {"the lines in it answer 500 damaged; the others of the result stay readable", repairIt},
	Pack:       {"reading the messages answers 500 damaged; checkpoints show what they had of them", restoreLog},
	Hole:       {"reading the message answers 500 damaged; what a checkpoint shows of it stays readable", restoreLog},
	Orphan:     {"nothing: it takes room", "a support question: nothing in Varve leaves such rows"},
	Archive: {"the session cannot be restored", "nothing can rebuild an archive: restore the store's objects, or " +
		"the session, from a backup"},
	Audit: {"who did what cannot be told from the trail at this place",
		"compare with an export of the trail or a backup; whoever changed it had the rights of the tables' owner"},
	View: {"reads fall back to an older checkpoint or to the log, and are marked degraded", recompactIt},
}
