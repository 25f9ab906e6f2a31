package view

import (
	"slices"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Rendered is a message of a checkpoint with the seq of the message of the log that it renders.
type Rendered struct {
	session.Message
	Replaces bool // it replaces several messages, of which Seq is the first
}

// CheckpointMessages returns the messages of a view's checkpoint. A unit that has as many messages as the log has there
// renders them one by one; any other replaces them, also one that has only some steps of a message.
func CheckpointMessages(v *postgres.ViewWithSources) ([]Rendered, error) {
	list, err := StoredUnits(v.Body, v.Size, v.Units)
	if err != nil {
		return nil, session.DamagedCheckpoint(v.Checkpoint, err)
	}
	var messages []Rendered
	for i, u := range list {
		bodies, err := Split(u.Joined)
		if err != nil {
			return nil, session.DamagedCheckpoint(v.Checkpoint, err)
		}
		last := v.Through
		if i+1 < len(list) {
			last = list[i+1].FirstSeq - 1
		}
		seqs := seqsOf(v.Seqs, u.FirstSeq, last)
		for b, body := range bodies {
			m := session.Message{Seq: u.FirstSeq, Format: v.Format, Body: body}
			replaces := len(seqs) != len(bodies) || u.Messages == 0
			if !replaces {
				m.Seq = seqs[b]
			}
			messages = append(messages, Rendered{Message: m, Replaces: replaces})
		}
	}
	return messages, nil
}

// seqsOf returns those of ascending seqs that are from first to last.
func seqsOf(all []int64, first, last int64) []int64 {
	from, _ := slices.BinarySearch(all, first)
	to, _ := slices.BinarySearch(all, last+1)
	return all[from:max(from, to)]
}
