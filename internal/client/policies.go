package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/varve-dev/varve/internal/protocol"
)

// policyPath is that of a session's policy or, without an id, that of the tenant's default.
func policyPath(id string) []string {
	if id == "" {
		return []string{"policy"}
	}
	return []string{"sessions", id, "policy"}
}

// Policy is GET /v1/sessions/{id}/policy or, without an id, GET /v1/policy.
func (c *Client) Policy(ctx context.Context, id string) (Answer[protocol.Policy], error) {
	return get[protocol.Policy](ctx, c, nil, policyPath(id)...)
}

// ReplacePolicy is PUT /v1/sessions/{id}/policy or, without an id, PUT /v1/policy.
func (c *Client) ReplacePolicy(ctx context.Context, id string, document []byte) error {
	_, err := decode[any](ctx, c, call{method: http.MethodPut, path: policyPath(id), body: document})
	return err
}

// MergePolicy is PATCH /v1/sessions/{id}/policy or, without an id, PATCH /v1/policy.
func (c *Client) MergePolicy(ctx context.Context, id string, document []byte) error {
	_, err := decode[any](ctx, c, call{method: http.MethodPatch, path: policyPath(id), body: document})
	return err
}

// CheckPolicy is POST /v1/policy/check: the document as the tenant's default, or as the policy of a session.
func (c *Client) CheckPolicy(ctx context.Context, document []byte, ofSession bool) (Answer[protocol.Policy], error) {
	query := url.Values{}
	if ofSession {
		query.Set("as", "session")
	}
	return decode[protocol.Policy](ctx, c, call{method: http.MethodPost, path: []string{"policy", "check"}, query: query, body: document})
}

// Profiles is GET /v1/policies/profiles.
func (c *Client) Profiles(ctx context.Context) (Answer[protocol.List[protocol.Profile]], error) {
	return get[protocol.List[protocol.Profile]](ctx, c, nil, "policies", "profiles")
}
