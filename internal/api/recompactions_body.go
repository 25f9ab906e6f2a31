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
	maxPerMinute        = 6000
	maxFilteredSessions = 1000
)

// recompactionRequest is the body of POST /v1/admin/recompactions.
type recompactionRequest struct {
	request.Document
	member  rawjson.Span // the policy
	filter  session.SessionFilter
	policy  json.RawMessage
	pace    session.Pace
	dryRun  bool
	ask     bool
	tenant  string
	confirm string
}

// recompaction returns what to begin.
func (r *recompactionRequest) recompaction() session.Recompaction {
	return session.Recompaction{Filter: r.filter, Policy: r.policy, Pace: r.pace, Ask: r.ask}
}

var (
	recompactionMembers = []string{"tenant", "filter", "policy", "from", "dry_run", "max_running", "per_minute",
		"start_at", "hours", "ask", "confirm_token"}
	filterMembers = []string{"sessions", "metadata", "created_before", "created_after", "min_tokens",
		"policy_version_below", "engine_version_below", "model", "format", "forked_from", "updated_after",
		"over_window", "failing", "percent"}
	hoursMembers = []string{"from", "to", "time_zone"}
)

// decodeRecompaction reads the body of a recompaction; no body is a recompaction of all sessions under their own
// policies. Its problems are in the document.
func decodeRecompaction(body []byte) (*recompactionRequest, error) {
	r := &recompactionRequest{pace: session.Pace{MaxRunning: defaultRunning}}
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
	case "max_running", "per_minute", "start_at", "hours":
		setPace(&r.Document, &r.pace, name, value)
	case "confirm_token":
		r.confirm, _ = r.Text("/confirm_token", value, 2*sha256.Size)
	}
}

// setPace reads a member that says when sessions may begin.
func setPace(d *request.Document, p *session.Pace, name string, value rawjson.Span) {
	switch name {
	case "max_running":
		p.MaxRunning = int(d.Integer("/max_running", value, 1, maxRunning))
	case "per_minute":
		p.PerMinute = new(int(d.Integer("/per_minute", value, 1, maxPerMinute)))
	case "start_at":
		p.StartAt = d.Time("/start_at", value)
	case "hours":
		p.Hours = hoursOf(d, value)
	}
}

// hoursOf reads the hours of the day in which sessions may begin.
func hoursOf(d *request.Document, value rawjson.Span) *session.Hours {
	h := &session.Hours{TimeZone: "UTC"}
	for name, member := range d.Members("/hours", value, hoursMembers) {
		text, _ := d.Text("/hours/"+name, member, session.MaxIDBytes)
		switch name {
		case "from":
			h.From = text
		case "to":
			h.To = text
		case "time_zone":
			h.TimeZone = text
		}
	}
	if member, reason := h.Check(); member != "" {
		d.Wrong("/hours/"+member, request.InvalidRequest, "%s", reason)
	}
	return h
}

func recompactionFilter(d *request.Document, value rawjson.Span) (f session.SessionFilter) {
	for name, member := range d.Members("/filter", value, filterMembers) {
		setFilter(d, &f, name, member)
	}
	if f.CreatedBefore != nil && f.CreatedAfter != nil && !f.CreatedAfter.Before(*f.CreatedBefore) {
		d.Wrong("/filter/created_after", request.InvalidRequest,
			"must be before created_before: no session is between them")
	}
	return f
}

func setFilter(d *request.Document, f *session.SessionFilter, name string, member rawjson.Span) {
	pointer := "/filter/" + name
	switch name {
	case "sessions":
		f.Sessions = sessionIDs(d, pointer, member)
	case "metadata":
		f.Metadata = metadataIn(d, member)
	case "created_before":
		f.CreatedBefore = d.Time(pointer, member)
	case "created_after":
		f.CreatedAfter = d.Time(pointer, member)
	case "updated_after":
		f.UpdatedAfter = d.Time(pointer, member)
	case "min_tokens":
		f.MinTokens = new(d.Integer(pointer, member, 0, math.MaxInt32))
	case "policy_version_below":
		f.PolicyVersionBelow = new(d.Integer(pointer, member, 1, math.MaxInt32))
	case "engine_version_below":
		f.EngineVersionBelow = new(d.Integer(pointer, member, 1, math.MaxInt32))
	case "model":
		f.Model = named(d, pointer, member)
	case "forked_from":
		f.ForkedFrom = named(d, pointer, member)
	case "format":
		f.Format = formatIn(d, pointer, member)
	case "over_window":
		f.OverWindow = d.Boolean(pointer, member)
	case "percent":
		f.Percent = int(d.Integer(pointer, member, 1, 100))
	case "failing":
		f.Failing = d.Boolean(pointer, member)
	}
}

// metadataIn reads the metadata that sessions must have.
func metadataIn(d *request.Document, value rawjson.Span) json.RawMessage {
	part := &request.Document{Data: d.Data}
	metadata := ingest.ReadMetadata(part, value)
	if err := part.Err(); err != nil {
		d.Add("/filter", err)
	}
	return metadata
}

// named reads a name, which is not empty.
func named(d *request.Document, pointer string, value rawjson.Span) string {
	text, ok := d.Text(pointer, value, session.MaxIDBytes)
	if ok && text == "" {
		d.Wrong(pointer, request.InvalidRequest, "must not be empty: leave it out for all")
	}
	return text
}

func formatIn(d *request.Document, pointer string, value rawjson.Span) session.Format {
	text, ok := d.Text(pointer, value, session.MaxIDBytes)
	if ok && !session.Format(text).Valid() {
		d.Wrong(pointer, request.InvalidRequest, "must be %s, not %q", request.Formats(), spelling.Shorten(text))
		return ""
	}
	return session.Format(text)
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
