package compactor

import (
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(true))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))
)

// stored is a rendition as the database keeps it.
func stored(in compact.Input, plan *compact.Plan, made *compact.Checkpoint) (*postgres.Checkpoint, error) {
	units, err := json.Marshal(made.Units)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(plan.Actions)
	if err != nil {
		return nil, err
	}
	refs := make([]string, len(plan.Results))
	for i, r := range plan.Results {
		refs[i] = r.Ref.String()
	}
	walk, err := walked(in.Format, made.Body)
	if err != nil {
		return nil, err
	}
	return &postgres.Checkpoint{
		Through: made.Through, Tokens: made.Tokens, Body: zframe.Compress(made.Body), Size: len(made.Body),
		State: encoder.EncodeAll(made.State, nil), Units: units, Manifest: manifest, OpenCalls: made.OpenCalls, Walk: walk,
		Policy: in.Policy.Document(), EngineVersion: compact.EngineVersion, Refs: refs, FromLog: in.Base == nil,
	}, nil
}

// walked is what a reader must know of a rendition to tell whether it is valid as it is.
func walked(f session.Format, body []byte) ([]byte, error) {
	bodies, err := elements(body)
	if err != nil {
		return nil, err
	}
	walk := wire.NewFastValidator(f)
	for _, body := range bodies {
		fact := wire.ShapeOfBody(f, body)
		walk.Add(&fact)
	}
	return walk.State(), nil
}

// loaded is a stored checkpoint as the engine takes it for its base.
func loaded(c *postgres.Checkpoint) (*compact.Checkpoint, error) {
	body, err := zframe.Decompress(nil, c.Body, c.Size)
	if err != nil {
		return nil, fmt.Errorf("body of checkpoint %d: %w", c.N, err)
	}
	state, err := decoder.DecodeAll(c.State, nil)
	if err != nil {
		return nil, fmt.Errorf("state of checkpoint %d: %w", c.N, err)
	}
	base := &compact.Checkpoint{Through: c.Through, Tokens: c.Tokens, Body: body, State: state}
	if err := json.Unmarshal(c.Units, &base.Units); err != nil {
		return nil, fmt.Errorf("units of checkpoint %d: %w", c.N, err)
	}
	return base, nil
}
