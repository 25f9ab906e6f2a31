package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

var groupMembers = []string{"id", "tenants", "filter", "policy", "dry_run", "max_running", "per_minute", "start_at",
	"hours", "ask"}

// createGroup handles POST /v1/admin/tenants/recompactions: a recompaction for each of some tenants. One with the id of
// a group that there is begins nothing, and is refused if that one does something else.
func (s *Server) createGroup(req *request.Request) error {
	c, dryRun, err := s.readGroupRequest(req)
	if err != nil {
		return err
	}
	if dryRun {
		return s.planGroup(req, c)
	}
	made, parts, err := s.Operators.CreateGroup(req.Ctx, c)
	if errors.Is(err, session.ErrIdempotencyReused) {
		return errOtherGroup
	}
	if err != nil {
		return err
	}
	return answerGroup(req, groupWith(made, parts))
}

func (s *Server) readGroupRequest(req *request.Request) (c session.RecompactionGroup, dryRun bool, err error) {
	c = session.RecompactionGroup{ID: uuid.Must(uuid.NewV7()), Pace: session.Pace{MaxRunning: defaultRunning}}
	if len(req.Body()) == 0 {
		return c, false, nil
	}
	d, err := request.Open(req.Body())
	if err != nil {
		return c, false, err
	}
	for name, value := range d.Fields(groupMembers) {
		switch name {
		case "id":
			c.ID = uuidIn(d, "/id", value)
		case "tenants":
			c.Tenants = tenantIDs(d, value)
		case "filter":
			c.Filter = ingest.Filter(d, value)
		case "policy": // whether it fits a tenant's policies shows when its sessions are compacted
			c.Policy = slices.Clone(value.Of(d.Data))
			ingest.PolicyOver(d, value, session.PolicyLayers{Tenant: policy.StoredDefault().Patch}, s.writers)
		case "dry_run":
			dryRun = d.Boolean("/dry_run", value)
		case "ask":
			c.Ask = d.Boolean("/ask", value)
		default:
			setPace(d, &c.Pace, name, value)
		}
	}
	if c.Ask && c.Policy != nil && !dryRun {
		d.Wrong("/ask", request.InvalidRequest, "%s", askBesidePolicy)
	}
	return c, dryRun, d.Err()
}

// uuidIn reads an id that is a UUID.
func uuidIn(d *request.Document, pointer string, value rawjson.Span) uuid.UUID {
	text, ok := d.Text(pointer, value, session.MaxIDBytes)
	id, err := uuid.Parse(text)
	if ok && (err != nil || id == uuid.Nil) {
		d.Wrong(pointer, request.InvalidRequest, "must be a UUID, not %q", spelling.Shorten(text))
	}
	return id
}

// tenantIDs reads the ids of tenants.
func tenantIDs(d *request.Document, value rawjson.Span) (ids []uuid.UUID) {
	spans, ok := d.Array("/tenants", value)
	if ok && (len(spans) == 0 || len(spans) > session.MaxRecompactedTenants) {
		d.Wrong("/tenants", request.InvalidRequest, "must contain 1 to %d ids, not %d: leave it out for all tenants",
			session.MaxRecompactedTenants, len(spans))
		return nil
	}
	for i, span := range spans {
		ids = append(ids, uuidIn(d, request.PointerTo("/tenants", i), span))
	}
	return ids
}

// planGroup counts what a recompaction of many tenants would do, as the dry run of a recompaction does.
func (s *Server) planGroup(req *request.Request, c session.RecompactionGroup) error {
	found, err := s.Operators.CountGroup(req.Ctx, c, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := s.sample(req.Ctx, s.Operators, found.Sample, c.Policy)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, planOf(found, sample))
}

// answerGroup answers with a group and what became of it.
func answerGroup(req *request.Request, a protocol.RecompactionGroup) error {
	ended := !slices.ContainsFunc(a.Recompactions, func(p protocol.RecompactionPart) bool { return !p.State.Ended() })
	return request.AnswerWork(req, ended, "/v1/admin/tenants/recompactions/"+a.ID.String(), a)
}

func (s *Server) group(ctx context.Context, id uuid.UUID) (protocol.RecompactionGroup, error) {
	c, parts, err := s.Operators.Group(ctx, id)
	return groupWith(c, parts), err
}

// groupWith returns a group and what became of it.
func groupWith(c session.RecompactionGroup, parts []session.RecompactionPart) protocol.RecompactionGroup {
	a := groupOf(c)
	a.Progress, a.States = &protocol.RecompactionProgress{}, map[session.RecompactionState]int{}
	a.Recompactions = []protocol.RecompactionPart{}
	for i := range parts {
		part := recompactionOf(parts[i].Recompaction)
		a.Progress.Add(part.Progress)
		a.States[part.State]++
		a.TokensBefore += part.TokensBefore
		a.TokensAfter += part.TokensAfter
		a.Recompactions = append(a.Recompactions, protocol.RecompactionPart{
			Tenant: parts[i].Tenant, Recompaction: part.ID, State: part.State, Progress: part.Progress,
			NextStartAt: part.NextStartAt,
		})
	}
	return a
}

// groupOf returns a group as lists have it, without what became of it.
func groupOf(c session.RecompactionGroup) protocol.RecompactionGroup {
	return protocol.RecompactionGroup{
		ID: c.ID, Tenants: len(c.Tenants), Filter: c.Filter, Policy: c.Policy, MaxRunning: c.Pace.MaxRunning,
		PerMinute: c.Pace.PerMinute, StartAt: c.Pace.StartAt, Hours: c.Pace.Hours, Ask: c.Ask, CreatedAt: c.CreatedAt,
	}
}

// listGroups handles GET /v1/admin/tenants/recompactions.
func (s *Server) listGroups(req *request.Request) error {
	find := func(l *request.List) ([]session.RecompactionGroup, error) {
		return s.Operators.Groups(req.Ctx, l.Page())
	}
	place := func(last session.RecompactionGroup) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "groups", find, groupOf, place)
}

// readGroup handles GET /v1/admin/tenants/recompactions/{group}.
func (s *Server) readGroup(req *request.Request) error {
	found, err := s.group(req.Ctx, req.PathID("group"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// controlGroup handles POST /v1/admin/tenants/recompactions/{group}/pause, resume, cancel and rollback. Doing it twice
// changes nothing.
func (s *Server) controlGroup(what postgres.Control) handler {
	return func(req *request.Request) error {
		id := req.PathID("group")
		if err := s.Operators.ControlGroup(req.Ctx, id, what); err != nil {
			return err
		}
		found, err := s.group(req.Ctx, id)
		if err != nil {
			return err
		}
		return answerGroup(req, found)
	}
}

// compareGroup handles GET /v1/admin/tenants/recompactions/{group}/comparison.
func (s *Server) compareGroup(req *request.Request) error {
	found, err := s.Operators.CompareGroup(req.Ctx, req.PathID("group"))
	return request.AnswerFound(req, found, err, request.AsIs)
}
