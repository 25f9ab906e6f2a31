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

var campaignMembers = []string{"id", "tenants", "filter", "policy", "dry_run", "max_running", "per_minute", "start_at",
	"hours", "ask"}

// createCampaign handles POST /v1/admin/campaigns: a recompaction for each of some tenants. One with the id of a
// campaign that there is begins nothing, and is refused if that one does something else.
func (s *Server) createCampaign(req *request.Request) error {
	c, dryRun, err := s.readCampaignRequest(req)
	if err != nil {
		return err
	}
	if dryRun {
		return s.planCampaign(req, c)
	}
	made, parts, err := s.Operators.CreateCampaign(req.Ctx, c)
	if errors.Is(err, session.ErrIdempotencyReused) {
		return errOtherCampaign
	}
	if err != nil {
		return err
	}
	return answerCampaign(req, campaignWith(made, parts))
}

func (s *Server) readCampaignRequest(req *request.Request) (c session.Campaign, dryRun bool, err error) {
	c = session.Campaign{ID: uuid.Must(uuid.NewV7()), Pace: session.Pace{MaxRunning: defaultRunning}}
	if len(req.Body()) == 0 {
		return c, false, nil
	}
	d, err := request.Open(req.Body())
	if err != nil {
		return c, false, err
	}
	for name, value := range d.Fields(campaignMembers) {
		switch name {
		case "id":
			c.ID = uuidIn(d, "/id", value)
		case "tenants":
			c.Tenants = campaignTenants(d, value)
		case "filter":
			c.Filter = recompactionFilter(d, value)
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

// campaignTenants reads the ids of tenants.
func campaignTenants(d *request.Document, value rawjson.Span) (ids []uuid.UUID) {
	spans, ok := d.Array("/tenants", value)
	if ok && (len(spans) == 0 || len(spans) > session.MaxCampaignTenants) {
		d.Wrong("/tenants", request.InvalidRequest, "must contain 1 to %d ids, not %d: leave it out for all tenants",
			session.MaxCampaignTenants, len(spans))
		return nil
	}
	for i, span := range spans {
		ids = append(ids, uuidIn(d, request.PointerTo("/tenants", i), span))
	}
	return ids
}

// planCampaign counts what a campaign would do, as the dry run of a recompaction does.
func (s *Server) planCampaign(req *request.Request, c session.Campaign) error {
	found, err := s.Operators.CountCampaign(req.Ctx, c, sampledSessions)
	if err != nil {
		return err
	}
	sample, err := s.sample(req.Ctx, s.Operators, found.Sample, c.Policy)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, planOf(found, sample))
}

// answerCampaign answers with a campaign and what became of it.
func answerCampaign(req *request.Request, a protocol.Campaign) error {
	ended := !slices.ContainsFunc(a.Recompactions, func(p protocol.CampaignPart) bool { return !p.State.Ended() })
	return answerWork(req, ended, "/v1/admin/campaigns/"+a.ID.String(), a)
}

func (s *Server) campaign(ctx context.Context, id uuid.UUID) (protocol.Campaign, error) {
	c, parts, err := s.Operators.Campaign(ctx, id)
	return campaignWith(c, parts), err
}

// campaignWith returns a campaign and what became of it.
func campaignWith(c session.Campaign, parts []session.CampaignPart) protocol.Campaign {
	a := campaignOf(c)
	a.Progress, a.States = &protocol.RecompactionProgress{}, map[session.RecompactionState]int{}
	a.Recompactions = []protocol.CampaignPart{}
	for i := range parts {
		part := recompactionOf(parts[i].Recompaction)
		a.Progress.Add(part.Progress)
		a.States[part.State]++
		a.TokensBefore += part.TokensBefore
		a.TokensAfter += part.TokensAfter
		a.Recompactions = append(a.Recompactions, protocol.CampaignPart{
			Tenant: parts[i].Tenant, Recompaction: part.ID, State: part.State, Progress: part.Progress,
			NextStartAt: part.NextStartAt,
		})
	}
	return a
}

// campaignOf returns a campaign as lists have it, without what became of it.
func campaignOf(c session.Campaign) protocol.Campaign {
	return protocol.Campaign{
		ID: c.ID, Tenants: len(c.Tenants), Filter: c.Filter, Policy: c.Policy, MaxRunning: c.Pace.MaxRunning,
		PerMinute: c.Pace.PerMinute, StartAt: c.Pace.StartAt, Hours: c.Pace.Hours, Ask: c.Ask, CreatedAt: c.CreatedAt,
	}
}

// listCampaigns handles GET /v1/admin/campaigns.
func (s *Server) listCampaigns(req *request.Request) error {
	find := func(l *request.List) ([]session.Campaign, error) { return s.Operators.Campaigns(req.Ctx, l.Page()) }
	place := func(last session.Campaign) request.Place { return request.PlaceIn(last.CreatedAt, last.ID) }
	return request.AnswerList(req, "campaigns", find, campaignOf, place)
}

// readCampaign handles GET /v1/admin/campaigns/{campaign}.
func (s *Server) readCampaign(req *request.Request) error {
	found, err := s.campaign(req.Ctx, req.PathID("campaign"))
	return request.AnswerFound(req, found, err, request.AsIs)
}

// controlCampaign handles POST /v1/admin/campaigns/{campaign}/ with what is asked behind it. Doing it twice changes
// nothing.
func (s *Server) controlCampaign(what postgres.Control) handler {
	return func(req *request.Request) error {
		id := req.PathID("campaign")
		if err := s.Operators.ControlCampaign(req.Ctx, id, what); err != nil {
			return err
		}
		found, err := s.campaign(req.Ctx, id)
		if err != nil {
			return err
		}
		return answerCampaign(req, found)
	}
}

// compareCampaign handles GET /v1/admin/campaigns/{campaign}/comparison.
func (s *Server) compareCampaign(req *request.Request) error {
	found, err := s.Operators.CompareCampaign(req.Ctx, req.PathID("campaign"))
	return request.AnswerFound(req, found, err, request.AsIs)
}
