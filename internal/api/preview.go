package api

import (
	"net/http"

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
func (s *Server) previewSession(x *exchange) error {
	q := x.query("actions")
	all := q.choice("actions", "changed", "all") == "all"
	if err := q.err(); err != nil {
		return err
	}
	at, err := x.address()
	if err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	defer body.free()
	found, err := s.Store.Session(x.ctx, at)
	if err != nil {
		return err
	}
	order, err := previewOrder(body.b, func() (session.PolicyLayers, error) { return s.Store.SessionPolicy(x.ctx, at) })
	if err != nil {
		return err
	}
	snap, err := s.Store.Snapshot(x.ctx, session.Key{Tenant: at.Tenant, Key: found.Key})
	if err != nil {
		return err
	}
	proposal, err := compactor.Propose(x.ctx, s.Store, snap, order, nil)
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, previewOf(proposal, all))
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
	d := &document{data: body}
	if err := d.check(bodyLimits); err != nil {
		return o, err
	}
	for name, value := range d.members("", rawjson.Value(body), previewFields) {
		switch name {
		case "policy":
			if o.Policy, err = d.policyOver(value, below); err != nil {
				return o, err
			}
		case "from":
			o.From = d.readFrom(value)
		}
	}
	return o, d.err()
}

// readFrom reads where a compaction starts.
func (d *document) readFrom(value rawjson.Span) compactor.From {
	text, ok := d.text("/from", value, session.MaxIDBytes)
	from := compactor.From(text)
	if ok && from != compactor.FromCheckpoint && from != compactor.FromLog {
		d.wrong("/from", invalidRequest, "from is %q: say checkpoint or log, or leave it out for what a run would do", shorten(text))
	}
	return from
}

// policyOver reads member policy as the whole policy that a session would have by it: an object is merged into the
// session's own layer, null is the tenant's default. It is nil if there is something wrong with it.
func (d *document) policyOver(value rawjson.Span, below func() (session.PolicyLayers, error)) (*policy.Policy, error) {
	first := d.data[value.Start]
	if first != '{' && first != 'n' {
		d.wrong("/policy", invalidRequest, "an object or null is needed, this is %s", kindOf(first))
		return nil, nil
	}
	layers, err := below()
	if err != nil {
		return nil, err
	}
	if first == 'n' {
		return d.tenantPolicy(layers)
	}
	return d.resolved(policy.Resolve(layers.Tenant, policy.Merge(layers.Own, value.Of(d.data)), "/policy"))
}

// tenantPolicy returns the policy of a session that has none of its own.
func (d *document) tenantPolicy(layers session.PolicyLayers) (*policy.Policy, error) {
	return d.resolved(policy.Resolve(layers.Tenant, nil, ""))
}

// resolved returns a policy, or nil if it has problems, which it adds to those of the document.
func (d *document) resolved(p policy.Policy, _ policy.Sources, err error) (*policy.Policy, error) {
	if err != nil {
		d.add("", err)
		return nil, nil
	}
	return &p, nil
}
