package recompact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

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
	defaultRunning = 2
	maxRunning     = 32
	maxPerMinute   = 6000
)

// body is the body of POST /v1/admin/recompactions.
type body struct {
	request.Document
	member  rawjson.Span // the policy
	filter  session.SessionFilter
	policy  json.RawMessage
	pace    Pace
	dryRun  bool
	ask     bool
	tenant  string
	confirm string
}

// recompaction returns what to begin.
func (r *body) recompaction() Stored {
	return Stored{Filter: r.filter, Policy: r.policy, Pace: r.pace, Ask: r.ask}
}

var (
	members = []string{"tenant", "filter", "policy", "from", "dry_run", "max_running", "per_minute",
		"start_at", "hours", "ask", "confirm_token"}
	hoursMembers = []string{"from", "to", "time_zone"}
)

// decode reads the body of a recompaction; no body is a recompaction of all sessions under their own
// policies. Its problems are in the document.
func decode(text []byte) (*body, error) {
	r := &body{pace: Pace{MaxRunning: defaultRunning}}
	if len(text) == 0 {
		return r, nil
	}
	d, err := request.Open(text)
	if err != nil {
		return nil, err
	}
	r.Document = *d
	for name, value := range r.Fields(members) {
		r.set(name, value)
	}
	return r, nil
}

func (r *body) set(name string, value rawjson.Span) {
	switch name {
	case "tenant":
		r.tenant, _ = r.Text("/tenant", value, session.MaxIDBytes)
	case "filter":
		r.filter = ingest.Filter(&r.Document, value)
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
func setPace(d *request.Document, p *Pace, name string, value rawjson.Span) {
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
func hoursOf(d *request.Document, value rawjson.Span) *Hours {
	h := &Hours{TimeZone: "UTC"}
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

// confirmToken returns a digest of what a recompaction would do, and to which tenant's sessions.
func (r *body) confirmToken(tenant uuid.UUID) string {
	var policy bytes.Buffer
	if r.policy != nil {
		_ = json.Compact(&policy, r.policy) // it was parsed
	}
	filter, _ := json.Marshal(r.filter) // it has nothing that JSON does not have
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%s", tenant, compact.EngineVersion, filter, &policy))
	return hex.EncodeToString(sum[:])
}
