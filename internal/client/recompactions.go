package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
)

var recompactions = []string{"admin", "recompactions"}

func recompactionPath(below ...string) []string { return append(recompactions[:2:2], below...) }

// Recompact is POST /v1/admin/recompactions. Sent again because its answer was lost, it is still one recompaction.
func (c *Client) Recompact(ctx context.Context, r protocol.RecompactionRequest) (a Answer[protocol.Recompaction], err error) {
	k := call{method: http.MethodPost, path: recompactions, idempotency: uuid.NewString()}
	if k.body, err = json.Marshal(r); err != nil {
		return a, err
	}
	return decode[protocol.Recompaction](ctx, c, k)
}

// PlanRecompaction is POST /v1/admin/recompactions with dry_run, which it sets.
func (c *Client) PlanRecompaction(
	ctx context.Context, r protocol.RecompactionRequest,
) (Answer[protocol.RecompactionPlan], error) {
	r.DryRun = true
	return post[protocol.RecompactionPlan](ctx, c, nil, r, recompactions...)
}

// Recompactions is GET /v1/admin/recompactions: at most limit, newest first.
func (c *Client) Recompactions(ctx context.Context, limit int) ([]Answer[protocol.Recompaction], error) {
	return list[protocol.Recompaction](ctx, c, limit, recompactions...)
}

// Recompaction is GET /v1/admin/recompactions/{recompaction}.
func (c *Client) Recompaction(ctx context.Context, id string) (Answer[protocol.Recompaction], error) {
	return get[protocol.Recompaction](ctx, c, nil, recompactionPath(id)...)
}

// RecompactionSessions is GET /v1/admin/recompactions/{recompaction}/sessions: at most limit.
func (c *Client) RecompactionSessions(ctx context.Context, id string, limit int) ([]Answer[protocol.RecompactionSession], error) {
	return list[protocol.RecompactionSession](ctx, c, limit, recompactionPath(id, "sessions")...)
}

// CancelRecompaction is POST /v1/admin/recompactions/{recompaction}/cancel. Twice is once.
func (c *Client) CancelRecompaction(ctx context.Context, id string) (Answer[protocol.Recompaction], error) {
	return post[protocol.Recompaction](ctx, c, nil, nil, recompactionPath(id, "cancel")...)
}
