package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/session"
)

// emitCompacted tells that a compaction has made a checkpoint, and what left the view with it.
func emitCompacted(ctx context.Context, tx pgx.Tx, key session.Key, o Outcome) error {
	if o.Checkpoint == nil {
		return nil
	}
	id, err := idOf(ctx, tx, key)
	if err != nil {
		return err
	}
	lost, err := manifest.Parse([]json.RawMessage{o.Checkpoint.Manifest})
	if err != nil {
		return err
	}
	n := o.Base + 1
	data := about{
		"run": o.Run.ID, "cause": o.Run.Cause, "checkpoint": n, "through_seq": o.Checkpoint.Through,
		"tokens_before": o.Run.TokensBefore, "tokens_after": o.Run.TokensAfter, "tokens_saved": o.Saved,
		"results_persisted": o.Run.ResultsPersisted,
		"loss": about{
			"entries": len(lost[0]), "tokens_saved": lost[0].Saved(), "stages": lost[0].Stages(),
			"manifest": fmt.Sprintf("/v1/sessions/%s/checkpoints/%d", url.PathEscape(id), n),
		},
	}
	if o.Part != nil {
		maps.Copy(data, o.Part.About)
	}
	return Emit(ctx, tx, key.Tenant, Happening{Kind: session.EventCompacted, Topic: session.TopicOf(id), Data: data})
}
