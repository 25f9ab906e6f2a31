package api

import (
	"net/http"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

func previewOf(p *compactor.Proposal, all bool) protocol.Preview {
	before, after := p.Tokens()
	answer := protocol.Preview{
		From: string(p.From), Through: p.Plan.Through, TokensBefore: before, TokensAfter: after, WouldChange: p.Changed, Due: p.Decision.Due(),
		Reason: p.Decision.Reason(), Why: p.Decision, Stages: p.Plan.Stages, Actions: p.Plan.Actions, Report: p.Report(),
	}
	if all {
		answer.Actions = p.Parts()
	}
	return answer
}

// previewSession is POST /v1/sessions/{id}/preview. It has no effect, so an Idempotency-Key says nothing to it.
func (s *Server) previewSession(req *request.Request) error {
	q := req.Query("actions")
	all := q.Choice("actions", "changed", "all") == "all"
	at := req.Address()
	body := req.Body()
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Session(req.Ctx, at)
	if err != nil {
		return err
	}
	order, err := previewOrder(body, func() (session.PolicyLayers, error) { return s.Store.SessionPolicy(req.Ctx, at) })
	if err != nil {
		return err
	}
	snap, err := s.Store.Snapshot(req.Ctx, session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil {
		return err
	}
	proposal, err := compactor.Propose(req.Ctx, s.Store, snap, order, nil)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, previewOf(proposal, all))
}

// bodyLimits hold for bodies that are all our own.
var bodyLimits = rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}

var previewFields = []string{"policy", "from"}

// previewOrder reads the body of a preview; no body is the compaction that an ordinary run would do. below reads what a
// policy is put on top of.
func previewOrder(body []byte, below func() (session.PolicyLayers, error)) (o compactor.Request, err error) {
	o.Cause = compactor.CausePreview
	if len(body) == 0 {
		return o, nil
	}
	d := &request.Document{Data: body}
	if err := d.Check(bodyLimits); err != nil {
		return o, err
	}
	for name, value := range d.Members("", rawjson.Value(body), previewFields) {
		switch name {
		case "policy":
			if o.Policy, err = policyOver(d, value, below); err != nil {
				return o, err
			}
		case "from":
			o.From = readFrom(d, value)
		}
	}
	return o, d.Err()
}

// readFrom reads where a compaction starts.
func readFrom(d *request.Document, value rawjson.Span) compactor.From {
	text, ok := d.Text("/from", value, session.MaxIDBytes)
	from := compactor.From(text)
	if ok && from != compactor.FromCheckpoint && from != compactor.FromLog {
		d.Wrong("/from", request.InvalidRequest, "from is %q: say checkpoint or log, or leave it out for what a run would do", request.Shorten(text))
	}
	return from
}

// policyOver reads member policy as the whole policy that a session would have by it: an object is merged into the
// session's own layer, null is the tenant's default. It is nil if there is something wrong with it.
func policyOver(d *request.Document, value rawjson.Span, below func() (session.PolicyLayers, error)) (*policy.Policy, error) {
	first := d.Data[value.Start]
	if first != '{' && first != 'n' {
		d.Wrong("/policy", request.InvalidRequest, "must be an object or null, not %s", d.Kind(value))
		return nil, nil
	}
	layers, err := below()
	if err != nil {
		return nil, err
	}
	if first == 'n' {
		return tenantPolicyOf(d, layers)
	}
	made, sources, err := policy.Resolve(layers.Tenant, policy.Merge(layers.Own, value.Of(d.Data)), "/policy")
	return resolved(d, made, sources, err)
}

// tenantPolicyOf returns the policy of a session that has none of its own.
func tenantPolicyOf(d *request.Document, layers session.PolicyLayers) (*policy.Policy, error) {
	made, sources, err := policy.Resolve(layers.Tenant, nil, "")
	return resolved(d, made, sources, err)
}

// resolved returns a policy, or nil if it has problems, which it adds to those of the document.
func resolved(d *request.Document, p policy.Policy, _ policy.Sources, err error) (*policy.Policy, error) {
	if err != nil {
		d.Add("", err)
		return nil, nil
	}
	return &p, nil
}
