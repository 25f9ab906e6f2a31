package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The ranges of a recompaction's settings.
const (
	defaultRunning      = 2
	maxRunning          = 32
	maxFilteredSessions = 1000
)

// recompactionRequest is the body of POST /v1/admin/recompactions.
type recompactionRequest struct {
	request.Document
	member     rawjson.Span // the policy
	filter     session.SessionFilter
	policy     json.RawMessage
	maxRunning int
	dryRun     bool
	ask        bool
	tenant     string
	confirm    string
}

var (
	recompactionMembers = []string{"tenant", "filter", "policy", "from", "dry_run", "max_running", "ask",
		"confirm_token"}
	filterMembers = []string{"sessions", "metadata", "created_before", "created_after", "min_tokens",
		"policy_version_below", "engine_version_below"}
)

// decodeRecompaction reads the body of a recompaction; no body is a recompaction of all sessions under their own
// policies. Its problems are in the document.
func decodeRecompaction(body []byte) (*recompactionRequest, error) {
	r := &recompactionRequest{maxRunning: defaultRunning}
	if len(body) == 0 {
		return r, nil
	}
	d, err := request.Open(body)
	if err != nil {
		return nil, err
	}
	r.Document = *d
	for name, value := range r.Fields(recompactionMembers) {
		r.set(name, value)
	}
	return r, nil
}

func (r *recompactionRequest) set(name string, value rawjson.Span) {
	switch name {
	case "tenant":
		r.tenant, _ = r.Text("/tenant", value, session.MaxIDBytes)
	case "filter":
		r.filter = recompactionFilter(&r.Document, value)
	case "policy":
		r.member = value
		r.policy = bytes.Clone(value.Of(r.Data))
	case "from":
		if from, ok := r.Text("/from", value, session.MaxIDBytes); ok && from != string(compactor.FromLog) {
			r.Wrong("/from", request.InvalidRequest, "must be %q, where a recompaction starts, not %q",
				compactor.FromLog, spelling.Shorten(from))
		}
	case "dry_run":
		r.dryRun = r.Boolean("/dry_run", value)
	case "ask":
		r.ask = r.Boolean("/ask", value)
	case "max_running":
		r.maxRunning = int(r.Integer("/max_running", value, 1, maxRunning))
	case "confirm_token":
		r.confirm, _ = r.Text("/confirm_token", value, 2*sha256.Size)
	}
}

func recompactionFilter(d *request.Document, value rawjson.Span) (f session.SessionFilter) {
	for name, member := range d.Members("/filter", value, filterMembers) {
		pointer := "/filter/" + name
		switch name {
		case "sessions":
			f.Sessions = sessionIDs(d, pointer, member)
		case "metadata":
			part := &request.Document{Data: d.Data}
			f.Metadata = ingest.ReadMetadata(part, member)
			if err := part.Err(); err != nil {
				d.Add("/filter", err)
			}
		case "created_before":
			f.CreatedBefore = d.Time(pointer, member)
		case "created_after":
			f.CreatedAfter = d.Time(pointer, member)
		case "min_tokens":
			f.MinTokens = new(d.Integer(pointer, member, 0, math.MaxInt32))
		case "policy_version_below":
			f.PolicyVersionBelow = new(d.Integer(pointer, member, 1, math.MaxInt32))
		case "engine_version_below":
			f.EngineVersionBelow = new(d.Integer(pointer, member, 1, math.MaxInt32))
		}
	}
	if f.CreatedBefore != nil && f.CreatedAfter != nil && !f.CreatedAfter.Before(*f.CreatedBefore) {
		d.Wrong("/filter/created_after", request.InvalidRequest,
			"must be before created_before: no session is between them")
	}
	return f
}

// sessionIDs reads ids of sessions. Those that name none find none.
func sessionIDs(d *request.Document, pointer string, value rawjson.Span) (ids []string) {
	spans, ok := d.Array(pointer, value)
	if ok && (len(spans) == 0 || len(spans) > maxFilteredSessions) {
		d.Wrong(pointer, request.InvalidRequest, "must contain 1 to %d ids, not %d: leave it out for all sessions",
			maxFilteredSessions, len(spans))
		return nil
	}
	for i, span := range spans {
		if id, ok := d.Text(request.PointerTo(pointer, i), span, session.MaxIDBytes); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// confirmToken returns a digest of what a recompaction would do, and to which tenant's sessions.
func (r *recompactionRequest) confirmToken(tenant uuid.UUID) string {
	var policy bytes.Buffer
	if r.policy != nil {
		_ = json.Compact(&policy, r.policy) // it was parsed
	}
	filter, _ := json.Marshal(r.filter) // it has nothing that JSON does not have
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%s", tenant, compact.EngineVersion, filter, &policy))
	return hex.EncodeToString(sum[:])
}
