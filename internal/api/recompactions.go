package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// The ranges of a recompaction's numbers.
const (
	defaultMaxRunning        = 2
	mostRunning              = 32
	maxFilteredSessions      = 1000
	mostTokens               = 1 << 50
	mostVersion              = 1 << 31
	sampledSessions          = 20
	sampleTime               = 15 * time.Second // an answer with a smaller sample is better than none
	confirmTokenBytes        = 2 * sha256.Size
	maxTenantBytes           = 255
	maxTimestampBytes        = 64
	recompactionsPath        = "/v1/admin/recompactions"
	recompactionRetrySeconds = "2"
)

// recompactionRequest is the body of POST /v1/admin/recompactions.
type recompactionRequest struct {
	filter     postgres.RecompactionFilter
	policy     json.RawMessage
	maxRunning int
	dryRun     bool
	tenant     string
	confirm    string
}

var (
	recompactionMembers = []string{"tenant", "filter", "policy", "from", "dry_run", "max_running", "confirm_token"}
	filterMembers       = []string{"sessions", "metadata", "created_before", "created_after", "min_tokens", "engine_version_below"}
)

// createRecompaction is POST /v1/admin/recompactions.
func (s *Server) createRecompaction(x *exchange) error {
	if err := x.query().err(); err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	defer body.free()
	id, err := x.idempotency(body.b)
	if err != nil {
		return err
	}
	r, err := decodeRecompaction(body.b)
	if err != nil {
		return err
	}
	if r.tenant != "" && r.tenant != x.tenant.String() {
		return fmt.Errorf("recompaction of tenant %s: %w", r.tenant, session.ErrForbidden)
	}
	token := r.confirmToken(x.tenant)
	switch {
	case r.dryRun:
		return s.dryRun(x, r, token)
	case r.confirm != "" && r.confirm != token:
		return session.Invalid("/confirm_token", invalidRequest, "the token is of a dry run with another filter, policy or engine: make a dry run of this body, then send its confirm_token")
	}
	begun, replayed, err := s.Store.CreateRecompaction(x.ctx, x.tenant, postgres.Recompaction{Filter: r.filter, Policy: r.policy, MaxRunning: r.maxRunning}, id)
	if err != nil {
		return err
	}
	x.replayed(id, replayed)
	return x.recompaction(begun)
}

// recompaction answers with a recompaction: one that has not ended is accepted only.
func (x *exchange) recompaction(r postgres.Recompaction) error {
	if r.State.Ended() {
		return x.json(http.StatusOK, recompactionOf(r))
	}
	x.w.Header().Set("Location", recompactionsPath+"/"+r.ID.String())
	x.w.Header().Set("Retry-After", recompactionRetrySeconds)
	return x.json(http.StatusAccepted, recompactionOf(r))
}

// decodeRecompaction reads the body of a recompaction; none is one of all sessions under their own policies.
func decodeRecompaction(body []byte) (recompactionRequest, error) {
	r := recompactionRequest{maxRunning: defaultMaxRunning}
	if len(body) == 0 {
		return r, nil
	}
	d := &document{data: body}
	if err := d.check(rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}); err != nil {
		return r, err
	}
	for name, value := range d.members("", rawjson.Value(body), recompactionMembers) {
		r.set(d, name, value)
	}
	return r, d.err()
}

func (r *recompactionRequest) set(d *document, name string, value rawjson.Span) {
	switch name {
	case "tenant":
		r.tenant, _ = d.text("/tenant", value, maxTenantBytes)
	case "filter":
		r.filter = d.recompactionFilter(value)
	case "policy":
		r.policy = d.policyPatch(value)
	case "from":
		if from, ok := d.text("/from", value, session.MaxIDBytes); ok && from != string(jobs.FromLog) {
			d.wrong("/from", invalidRequest, "%q is not possible: a recompaction starts from the %q", shorten(from), jobs.FromLog)
		}
	case "dry_run":
		r.dryRun = d.boolean("/dry_run", value)
	case "max_running":
		r.maxRunning = int(d.integer("/max_running", value, 1, mostRunning))
	case "confirm_token":
		r.confirm, _ = d.text("/confirm_token", value, confirmTokenBytes)
	}
}

func (d *document) boolean(pointer string, value rawjson.Span) bool {
	literal := string(value.Of(d.data))
	if literal != "true" && literal != "false" {
		d.wrong(pointer, invalidRequest, "true or false is needed, this is %s", kindOf(literal[0]))
	}
	return literal == "true"
}

// policyPatch reads changes to the policies of the sessions; null is none. They are checked over the default policy:
// whether they fit a session's own shows when that is compacted.
func (d *document) policyPatch(value rawjson.Span) json.RawMessage {
	if d.data[value.Start] == 'n' {
		return nil
	}
	patch := value.Of(d.data)
	if _, err := compact.ParsePolicyAt("/policy", patch); err != nil {
		d.add("", err)
		return nil
	}
	return bytes.Clone(patch)
}

func (d *document) recompactionFilter(value rawjson.Span) (f postgres.RecompactionFilter) {
	for name, member := range d.members("/filter", value, filterMembers) {
		switch pointer := "/filter/" + name; name {
		case "sessions":
			f.Sessions = d.sessionIDs(pointer, member)
		case "metadata":
			part := &document{data: d.data}
			f.Metadata = part.metadata(member)
			if err := part.err(); err != nil {
				d.add("/filter", err)
			}
		case "created_before":
			f.CreatedBefore = d.timestamp(pointer, member)
		case "created_after":
			f.CreatedAfter = d.timestamp(pointer, member)
		case "min_tokens":
			n := d.integer(pointer, member, 0, mostTokens)
			f.MinTokens = &n
		case "engine_version_below":
			n := d.integer(pointer, member, 1, mostVersion)
			f.EngineVersionBelow = &n
		}
	}
	if f.CreatedBefore != nil && f.CreatedAfter != nil && !f.CreatedAfter.Before(*f.CreatedBefore) {
		d.wrong("/filter/created_after", invalidRequest, "it is not before created_before: no session is between them")
	}
	return f
}

// sessionIDs reads ids of sessions. Those that name none find none.
func (d *document) sessionIDs(pointer string, value rawjson.Span) (ids []string) {
	spans, ok := d.array(pointer, value)
	if ok && (len(spans) == 0 || len(spans) > maxFilteredSessions) {
		d.wrong(pointer, invalidRequest, "%d ids are not possible: send 1 to %d, or leave it out for all sessions", len(spans), maxFilteredSessions)
		return nil
	}
	for i, span := range spans {
		if id, ok := d.text(pointerTo(pointer, i), span, session.MaxIDBytes); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func (d *document) timestamp(pointer string, value rawjson.Span) *time.Time {
	text, ok := d.text(pointer, value, maxTimestampBytes)
	if !ok {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		d.wrong(pointer, invalidRequest, "%q is no time: write one like 2026-01-31T12:00:00Z", text)
		return nil
	}
	return &at
}

// confirmToken stands for what a recompaction would do to whose sessions.
func (r *recompactionRequest) confirmToken(tenant uuid.UUID) string {
	var policy bytes.Buffer
	if r.policy != nil {
		_ = json.Compact(&policy, r.policy) // it was parsed
	}
	filter, _ := json.Marshal(r.filter) // it has nothing that JSON does not have
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%s", tenant, compact.EngineVersion, filter, &policy))
	return hex.EncodeToString(sum[:])
}

// dryRunAnswer is what a recompaction would do.
type dryRunAnswer struct {
	DryRun        bool         `json:"dry_run"`
	Sessions      int64        `json:"sessions"`
	Messages      int64        `json:"messages"`
	TotalTokens   int64        `json:"total_tokens"`
	ContextTokens int64        `json:"context_tokens"`
	Sample        sampleAnswer `json:"sample"`
	Estimate      estimate     `json:"estimate"`
	ConfirmToken  string       `json:"confirm_token"`
}

// sampleAnswer is what the engine would do to some of the sessions.
type sampleAnswer struct {
	Sessions     int                          `json:"sessions"`
	Changed      int                          `json:"changed"`
	Unchanged    int                          `json:"unchanged"`
	Failed       int                          `json:"failed"`
	TokensBefore int64                        `json:"tokens_before"`
	TokensAfter  int64                        `json:"tokens_after"`
	Errors       []postgres.RecompactionError `json:"errors"`
}

// estimate is the sample, as if it were all.
type estimate struct {
	Changed      int64 `json:"changed"`
	TokensBefore int64 `json:"tokens_before"`
	TokensAfter  int64 `json:"tokens_after"`
}

// dryRun counts what a recompaction would do, and has the engine do it to a sample, without writing anything.
func (s *Server) dryRun(x *exchange, r recompactionRequest, token string) error {
	found, err := s.Store.CountRecompaction(x.ctx, x.tenant, r.filter, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := s.sample(x.ctx, found.Sample, r.policy)
	if err != nil {
		return err
	}
	a := dryRunAnswer{
		DryRun: true, Sessions: found.Sessions, Messages: found.Messages, TotalTokens: found.TotalTokens, ContextTokens: found.ContextTokens,
		Sample: sample, Estimate: sample.of(found), ConfirmToken: token,
	}
	return x.json(http.StatusOK, a)
}

func (s *Server) sample(ctx context.Context, sessions []postgres.SampledSession, policy json.RawMessage) (a sampleAnswer, err error) {
	a.Errors = []postgres.RecompactionError{}
	for began := time.Now(); len(sessions) > 0 && time.Since(began) < sampleTime; sessions = sessions[1:] {
		p, err := jobs.ProposeRecompaction(ctx, s.Store, sessions[0].Key, policy)
		switch {
		case errors.Is(err, session.ErrNotFound):
			continue // it was erased just now
		case ctx.Err() != nil || databaseIsDown(err):
			return a, err
		case err != nil:
			a.Failed++
			a.Errors = append(a.Errors, postgres.RecompactionError{Session: sessions[0].ID, Error: err.Error(), At: time.Now().UTC()})
		default:
			a.add(p)
		}
		a.Sessions++
	}
	return a, nil
}

func (a *sampleAnswer) add(p *jobs.Proposal) {
	a.TokensBefore += p.View()
	if !p.Changed {
		a.Unchanged++
		a.TokensAfter += p.View()
		return
	}
	a.Changed++
	a.TokensAfter += p.View() - p.Saved()
}

// of scales the sample to all sessions that were found.
func (a *sampleAnswer) of(found postgres.RecompactionCount) (e estimate) {
	e.TokensBefore, e.TokensAfter = found.ContextTokens, found.ContextTokens
	if a.Sessions > 0 {
		e.Changed = (int64(a.Changed)*found.Sessions + int64(a.Sessions)/2) / int64(a.Sessions)
	}
	if a.TokensBefore > 0 {
		e.TokensAfter = int64(float64(found.ContextTokens) * float64(a.TokensAfter) / float64(a.TokensBefore))
	}
	return e
}
