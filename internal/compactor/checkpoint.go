package compactor

import (
	"encoding/json"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(true))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))
)

// storedCheckpoint returns a proposal's rendition as the database keeps it.
func storedCheckpoint(p *Proposal) (*postgres.Checkpoint, error) {
	made := p.Made
	units, err := json.Marshal(made.Units)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(p.Plan.Actions)
	if err != nil {
		return nil, err
	}
	refs := make([]string, len(p.Plan.Results))
	for i, r := range p.Plan.Results {
		refs[i] = r.Ref.String()
	}
	body := zframe.Compress(made.Body)
	if body == nil {
		body = []byte{} // NULL is the body of a checkpoint that was pruned
	}
	return &postgres.Checkpoint{
		Through: made.Through, Tokens: made.Tokens, Body: body, Size: len(made.Body),
		State: encoder.EncodeAll(made.State, nil), Units: units, Manifest: manifest, OpenCalls: made.OpenCalls,
		ValidatorState: p.rendition.ValidatorState(), Policy: p.Input.Policy.Document(),
		EngineVersion: compact.EngineVersion, Refs: refs, FromLog: p.From == FromLog,
	}, nil
}

// loaded returns a stored checkpoint as the base that the engine starts from; *session.DamagedError.
func loaded(c *postgres.Checkpoint) (*compact.Checkpoint, error) {
	if c.Damage != nil {
		return nil, c.Damage
	}
	body, err := zframe.Decompress(nil, c.Body, c.Size)
	if err != nil {
		return nil, session.DamagedCheckpoint(c.N, err)
	}
	state, err := decoder.DecodeAll(c.State, nil)
	if err != nil {
		return nil, session.DamagedState(c.N, err)
	}
	base := &compact.Checkpoint{Through: c.Through, Tokens: c.Tokens, Body: body, State: state}
	if err := json.Unmarshal(c.Units, &base.Units); err != nil {
		return nil, session.DamagedCheckpoint(c.N, err)
	}
	return base, nil
}
