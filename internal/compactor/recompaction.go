package compactor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// ProposeRecompaction proposes what a recompaction with these changes to the policy would do to a session. No model is
// asked for summaries that are not kept.
//
// Errors: ErrNotFound, ErrLogTooLarge.
func ProposeRecompaction(
	ctx context.Context, store *postgres.Store, key session.Key, patch json.RawMessage, caller *modelcall.Caller,
) (*Proposal, error) {
	snap, request, err := recompaction(ctx, store, key, patch)
	if err != nil {
		return nil, err
	}
	request.Caller = caller
	return Propose(ctx, store, snap, request)
}

// recompaction returns a request that starts from the log, under the session's own policy with the changes of patch
// merged into it, and the snapshot for it. A patch of null is the tenant's policy.
func recompaction(ctx context.Context, store *postgres.Store, key session.Key, patch json.RawMessage) (
	snap postgres.Snapshot, o Request, err error,
) {
	o = Request{Cause: causeRecompaction, From: FromLog}
	if snap, err = store.Snapshot(ctx, key); err != nil || patch == nil {
		return snap, o, err
	}
	found, err := store.SessionPolicy(ctx, session.Address{Tenant: snap.Tenant, ID: snap.ID})
	if err != nil {
		return snap, o, err
	}
	own := json.RawMessage(nil)
	if string(patch) != "null" {
		own = policy.Merge(found.Own, patch)
	}
	resolved, _, err := policy.Resolve(found.Tenant, own, "/policy")
	if err != nil {
		return snap, o, fmt.Errorf("policy of session %s: %w", snap.ID, err)
	}
	o.Policy = &resolved
	return snap, o, nil
}
