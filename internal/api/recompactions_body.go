package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// The ranges of what a recompaction can be told.
const (
	defaultRunning      = 2
	mostRunning         = 32
	maxFilteredSessions = 1000
	maxTimestampBytes   = 64
)

// recompactionRequest is the body of POST /v1/admin/recompactions.
type recompactionRequest struct {
	filter     session.RecompactionFilter
	policy     json.RawMessage
	maxRunning int
	dryRun     bool
	tenant     string
	confirm    string
}

var (
	recompactionMembers = []string{"tenant", "filter", "policy", "from", "dry_run", "max_running", "confirm_token"}
	filterMembers       = []string{"sessions", "metadata", "created_before", "created_after", "min_tokens", "policy_version_below", "engine_version_below"}
)

// decodeRecompaction reads the body of a recompaction; none is one of all sessions under their own policies. tenant reads
// what a policy is checked over.
func decodeRecompaction(body []byte, tenant func() (session.Policy, error)) (recompactionRequest, error) {
	r := recompactionRequest{maxRunning: defaultRunning}
	if len(body) == 0 {
		return r, nil
	}
	d := &document{data: body}
	if err := d.check(bodyLimits); err != nil {
		return r, err
	}
	for name, value := range d.members("", rawjson.Value(body), recompactionMembers) {
		if err := r.set(d, name, value, tenant); err != nil {
			return r, err
		}
	}
	return r, d.err()
}

func (r *recompactionRequest) set(d *document, name string, value rawjson.Span, tenant func() (session.Policy, error)) (err error) {
	switch name {
	case "tenant":
		r.tenant, _ = d.text("/tenant", value, session.MaxIDBytes)
	case "filter":
		r.filter = d.recompactionFilter(value)
	case "policy":
		r.policy, err = d.policyPatch(value, tenant)
	case "from":
		if from, ok := d.text("/from", value, session.MaxIDBytes); ok && from != string(compactor.FromLog) {
			d.wrong("/from", invalidRequest, "%q is not possible: a recompaction starts from the %q", shorten(from), compactor.FromLog)
		}
	case "dry_run":
		r.dryRun = d.boolean("/dry_run", value)
	case "max_running":
		r.maxRunning = int(d.integer("/max_running", value, 1, mostRunning))
	case "confirm_token":
		r.confirm, _ = d.text("/confirm_token", value, 2*sha256.Size)
	}
	return err
}

func (d *document) boolean(pointer string, value rawjson.Span) bool {
	literal := string(value.Of(d.data))
	if literal != "true" && literal != "false" {
		d.wrong(pointer, invalidRequest, "true or false is needed, this is %s", kindOf(literal[0]))
	}
	return literal == "true"
}

// policyPatch reads changes to the policies of the sessions, and checks them over the tenant's default: whether they fit a
// session's own shows when that is compacted. null is that default.
func (d *document) policyPatch(value rawjson.Span, tenant func() (session.Policy, error)) (json.RawMessage, error) {
	_, err := d.policyOver(value, func() (session.PolicyLayers, error) {
		below, err := tenant()
		return session.PolicyLayers{Tenant: below.Patch}, err
	})
	return bytes.Clone(value.Of(d.data)), err
}

func (d *document) recompactionFilter(value rawjson.Span) (f session.RecompactionFilter) {
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
			n := d.integer(pointer, member, 0, math.MaxInt32)
			f.MinTokens = &n
		case "policy_version_below":
			n := d.integer(pointer, member, 1, math.MaxInt32)
			f.PolicyVersionBelow = &n
		case "engine_version_below":
			n := d.integer(pointer, member, 1, math.MaxInt32)
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
