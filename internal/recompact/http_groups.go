package recompact

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

var groupMembers = []string{"id", "tenants", "filter", "policy", "dry_run", "max_running", "per_minute", "start_at",
	"hours", "ask"}

var (
	errNoGroup = request.Fail(request.NotFound,
		"there is no such recompaction of many tenants: GET /v1/admin/tenants/recompactions lists them")
	errOtherGroup = request.Fail("idempotency_key_reused", "there is a recompaction with this id and another filter, "+
		"policy, pace or ask, or other tenants: "+
		"read it with GET /v1/admin/tenants/recompactions/{group}, or send a new id")
)

// ofOperators returns the routes of the recompactions of many tenants.
func (h handlers) ofOperators() []request.Route {
	operator := request.Access{Kind: session.OperatorCaller}
	const all, one = "/v1/admin/tenants/recompactions", "/v1/admin/tenants/recompactions/:group"
	const part = "/v1/admin/tenants/:tenant/recompactions/:recompaction"
	list := []request.Route{
		operator.Post(all, h.createGroup),
		operator.List(all, h.listGroups),
		operator.Get(one, h.readGroup).About("group", errNoGroup),
		operator.Get(one+"/comparison", h.compareGroup).About("group", errNoGroup),
	}
	for _, what := range []Control{Pause, Resume, Cancel, RollBack} {
		list = append(list, operator.Do(one+"/"+string(what), h.controlGroup(what)).About("group", errNoGroup))
	}
	return append(list,
		operator.Get(part, h.read).About("recompaction", errNoPart),
		operator.List(part+"/sessions", h.listSessions).About("recompaction", errNoPart))
}

// createGroup handles POST /v1/admin/tenants/recompactions: a recompaction for each of some tenants. One with the id of
// a group that there is begins nothing, and is refused if that one does something else.
func (h handlers) createGroup(req *request.Request) error {
	c, dryRun, err := h.readGroupRequest(req)
	if err != nil {
		return err
	}
	if dryRun {
		return h.planGroup(req, c)
	}
	made, parts, err := store{req.Store}.CreateGroup(req.Ctx, c)
	if errors.Is(err, session.ErrIdempotencyReused) {
		return errOtherGroup
	}
	if err != nil {
		return err
	}
	return answerGroup(req, groupWith(made, parts))
}

func (h handlers) readGroupRequest(req *request.Request) (c Group, dryRun bool, err error) {
	c = Group{ID: uuid.Must(uuid.NewV7()), Pace: Pace{MaxRunning: defaultRunning}}
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
			c.ID = d.UUID("/id", value)
		case "tenants":
			c.Tenants = tenantIDs(d, value)
		case "filter":
			c.Filter = ingest.Filter(d, value)
		case "policy": // whether it fits a tenant's policies shows when its sessions are compacted
			c.Policy = slices.Clone(value.Of(d.Data))
			ingest.PolicyOver(d, value, session.PolicyLayers{Tenant: policy.StoredDefault().Patch}, h.api.Writers)
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

// tenantIDs reads the ids of tenants.
func tenantIDs(d *request.Document, value rawjson.Span) (ids []uuid.UUID) {
	spans, ok := d.Array("/tenants", value)
	if ok && (len(spans) == 0 || len(spans) > maxTenants) {
		d.Wrong("/tenants", request.InvalidRequest, "must contain 1 to %d ids, not %d: leave it out for all tenants",
			maxTenants, len(spans))
		return nil
	}
	for i, span := range spans {
		ids = append(ids, d.UUID(request.PointerTo("/tenants", i), span))
	}
	return ids
}

// planGroup counts what a recompaction of many tenants would do, as the dry run of a recompaction does.
func (h handlers) planGroup(req *request.Request, c Group) error {
	found, err := store{h.api.Operators}.CountGroup(req.Ctx, c, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := h.sample(req.Ctx, h.api.Operators, found.Sample, c.Policy)
	return request.AnswerFound(req, planOf(found, sample), err, request.AsIs)
}

// answerGroup answers with a group and what became of it.
func answerGroup(req *request.Request, a RecompactionGroup) error {
	ended := !slices.ContainsFunc(a.Recompactions, func(p RecompactionPart) bool { return !p.State.Ended() })
	return request.AnswerWork(req, ended, "/v1/admin/tenants/recompactions/"+a.ID.String(), a)
}

func group(req *request.Request, id uuid.UUID) (RecompactionGroup, error) {
	c, parts, err := store{req.Store}.Group(req.Ctx, id)
	return groupWith(c, parts), err
}

// groupWith returns a group and what became of it.
func groupWith(c Group, parts []Part) RecompactionGroup {
	a := groupOf(c)
	a.Progress, a.States = &RecompactionProgress{}, map[RecompactionState]int{}
	a.Recompactions = []RecompactionPart{}
	for i := range parts {
		part := answerOf(parts[i].Stored)
		a.Progress.Add(part.Progress)
		a.States[part.State]++
		a.TokensBefore += part.TokensBefore
		a.TokensAfter += part.TokensAfter
		a.Recompactions = append(a.Recompactions, RecompactionPart{
			Tenant: parts[i].Tenant, Recompaction: part.ID, State: part.State, Progress: part.Progress,
			NextStartAt: part.NextStartAt,
		})
	}
	return a
}

// groupOf returns a group as lists have it, without what became of it.
func groupOf(c Group) RecompactionGroup {
	return RecompactionGroup{
		ID: c.ID, Tenants: len(c.Tenants), Filter: c.Filter, Policy: c.Policy, MaxRunning: c.Pace.MaxRunning,
		PerMinute: c.Pace.PerMinute, StartAt: c.Pace.StartAt, Hours: c.Pace.Hours, Ask: c.Ask, CreatedAt: c.CreatedAt,
	}
}

// listGroups handles GET /v1/admin/tenants/recompactions.
func (h handlers) listGroups(req *request.Request) error {
	find := func(l *request.List) ([]Group, error) {
		return store{h.api.Operators}.Groups(req.Ctx, l.Page())
	}
	place := func(last Group) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "groups", find, groupOf, place)
}

// readGroup handles GET /v1/admin/tenants/recompactions/{group}.
func (h handlers) readGroup(req *request.Request) error {
	found, err := group(req, req.PathID("group"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// controlGroup handles POST /v1/admin/tenants/recompactions/{group}/pause, resume, cancel and rollback. Doing it twice
// changes nothing.
func (h handlers) controlGroup(what Control) func(*request.Request) error {
	return func(req *request.Request) error {
		id := req.PathID("group")
		if err := (store{req.Store}).ControlGroup(req.Ctx, id, what); err != nil {
			return err
		}
		found, err := group(req, id)
		if err != nil {
			return err
		}
		return answerGroup(req, found)
	}
}

// compareGroup handles GET /v1/admin/tenants/recompactions/{group}/comparison.
func (h handlers) compareGroup(req *request.Request) error {
	found, err := store{h.api.Operators}.CompareGroup(req.Ctx, req.PathID("group"))
	return request.AnswerFound(req, found, err, request.AsIs)
}
