package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Session is GET /v1/sessions/{id}.
func (c *Client) Session(ctx context.Context, id string) (Answer[protocol.Session], error) {
	return get[protocol.Session](ctx, c, nil, "sessions", id)
}

// PutSession is PUT /v1/sessions/{id}: it creates the session, or returns the one that is there as it is.
func (c *Client) PutSession(ctx context.Context, id string, s protocol.SessionSettings) (a Answer[protocol.Session], err error) {
	k := call{method: http.MethodPut, path: []string{"sessions", id}}
	if k.body, err = json.Marshal(s); err != nil {
		return a, err
	}
	return decode[protocol.Session](ctx, c, k)
}

// Messages is GET /v1/sessions/{id}/messages: at most limit messages from seq on.
func (c *Client) Messages(ctx context.Context, id string, from int64, limit int) (Answer[protocol.MessagePage], error) {
	query := url.Values{"from_seq": {strconv.FormatInt(from, 10)}, "limit": {strconv.Itoa(limit)}}
	return get[protocol.MessagePage](ctx, c, query, "sessions", id, "messages")
}

// ViewOptions select a view. The zero value is the compacted view as a whole.
type ViewOptions struct {
	MaxTokens *int // the limit in tokens; nil for none
	Full      bool // the whole log
}

// Context is GET /v1/sessions/{id}/context.
func (c *Client) Context(ctx context.Context, id string, o ViewOptions) (Answer[protocol.View], error) {
	query := url.Values{}
	setInt(query, "max_tokens", o.MaxTokens)
	if o.Full {
		query.Set("view", "full")
	}
	return get[protocol.View](ctx, c, query, "sessions", id, "context")
}

func setInt(query url.Values, name string, value *int) {
	if value != nil {
		query.Set(name, strconv.Itoa(*value))
	}
}

// Compact is POST /v1/sessions/{id}/compact. The server waits up to so many seconds (60 at most) for the end of the run.
func (c *Client) Compact(ctx context.Context, id string, seconds int) (Answer[session.Run], error) {
	query := url.Values{}
	if seconds > 0 {
		query.Set("wait", strconv.Itoa(seconds))
	}
	return post[session.Run](ctx, c, query, nil, "sessions", id, "compact")
}

// Run is GET /v1/sessions/{id}/runs/{run}.
func (c *Client) Run(ctx context.Context, id, run string) (Answer[session.Run], error) {
	return get[session.Run](ctx, c, nil, "sessions", id, "runs", run)
}

// Runs is GET /v1/sessions/{id}/runs: at most limit, newest first.
func (c *Client) Runs(ctx context.Context, id string, limit int) ([]Answer[session.Run], error) {
	return list[session.Run](ctx, c, limit, "sessions", id, "runs")
}

// Preview is POST /v1/sessions/{id}/preview; all asks for every part, also those that stay.
func (c *Client) Preview(
	ctx context.Context, id string, r protocol.PreviewRequest, all bool,
) (Answer[protocol.Preview], error) {
	query := url.Values{}
	if all {
		query.Set("actions", "all")
	}
	return post[protocol.Preview](ctx, c, query, r, "sessions", id, "preview")
}

// Checkpoints is GET /v1/sessions/{id}/checkpoints: at most limit, newest first.
func (c *Client) Checkpoints(ctx context.Context, id string, limit int) ([]Answer[protocol.Checkpoint], error) {
	return list[protocol.Checkpoint](ctx, c, limit, "sessions", id, "checkpoints")
}

// Checkpoint is GET /v1/sessions/{id}/checkpoints/{n}; manifest is own or all.
func (c *Client) Checkpoint(ctx context.Context, id string, n int, manifest string) (Answer[protocol.CheckpointDetail], error) {
	query := url.Values{"manifest": {manifest}}
	return get[protocol.CheckpointDetail](ctx, c, query, "sessions", id, "checkpoints", strconv.Itoa(n))
}

// CheckpointContext is GET /v1/sessions/{id}/checkpoints/{n}/context.
func (c *Client) CheckpointContext(ctx context.Context, id string, n int) (Answer[protocol.View], error) {
	return get[protocol.View](ctx, c, nil, "sessions", id, "checkpoints", strconv.Itoa(n), "context")
}

// DiffCheckpoints is GET /v1/sessions/{id}/checkpoints/{n}/diff.
func (c *Client) DiffCheckpoints(ctx context.Context, id string, n, to int) (Answer[protocol.CheckpointDiff], error) {
	query := url.Values{"to": {strconv.Itoa(to)}}
	return get[protocol.CheckpointDiff](ctx, c, query, "sessions", id, "checkpoints", strconv.Itoa(n), "diff")
}

// RestoreCheckpoint is POST /v1/sessions/{id}/checkpoints/{n}/restore.
func (c *Client) RestoreCheckpoint(ctx context.Context, id string, n int) (Answer[protocol.Checkpoint], error) {
	return post[protocol.Checkpoint](ctx, c, nil, nil, "sessions", id, "checkpoints", strconv.Itoa(n), "restore")
}

// Results is GET /v1/sessions/{id}/results: at most limit, in the order of the log.
func (c *Client) Results(ctx context.Context, id string, limit int) ([]Answer[protocol.Result], error) {
	return list[protocol.Result](ctx, c, limit, "sessions", id, "results")
}

// Result is GET /v1/sessions/{id}/results/{ref}: limit lines from line offset on, nil for the server's defaults.
func (c *Client) Result(ctx context.Context, id, ref string, offset, limit *int) (Answer[protocol.ResultPage], error) {
	query := url.Values{}
	setInt(query, "offset", offset)
	setInt(query, "limit", limit)
	return get[protocol.ResultPage](ctx, c, query, "sessions", id, "results", ref)
}

// RawResult is GET /v1/sessions/{id}/results/{ref}?raw=true: the result's bytes, which the caller closes, and the SHA-256
// in hexadecimal that the server claims for them.
func (c *Client) RawResult(ctx context.Context, id, ref string) (body io.ReadCloser, sha256 string, err error) {
	body, header, err := c.stream(ctx, url.Values{"raw": {"true"}}, "sessions", id, "results", ref)
	return body, header.Get("X-Content-Sha256"), err
}

// Export is GET /v1/export or, with an id, GET /v1/sessions/{id}/export. The caller closes the stream.
func (c *Client) Export(ctx context.Context, id string) (body io.ReadCloser, err error) {
	path := []string{"export"}
	if id != "" {
		path = []string{"sessions", id, "export"}
	}
	body, _, err = c.stream(ctx, nil, path...)
	return body, err
}
