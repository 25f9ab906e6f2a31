package replays

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// The ranges of a replay's settings.
const (
	defaultSample      = 200
	maxSample          = 1000
	maxContenders      = 16
	maxWindows         = 16
	maxOutcomes        = 20_000 // they are summed up in memory
	defaultLogMessages = 10_000
	mostMessages       = 100_000
	defaultBytes       = 16 << 20
	mostBytes          = 64 << 20 // a worker needs several times as much memory
	maxContender       = 64       // characters of a name
	maxSeed            = 1 << 53  // what every JSON reader keeps
)

// tenantsPolicy is the name of the tenant's default among contenders, that of version 3 being tenant@3.
const tenantsPolicy = "tenant"

// body is that of POST /v1/admin/replays.
type body struct {
	request.Document
	replay Stored
	tenant string
	asked  []askedPolicy
}

// askedPolicy is an element of the member policies: the name of a policy, or a name and a document.
type askedPolicy struct {
	pointer  string
	name     string
	document rawjson.Span
	inline   bool
}

var (
	members      = []string{"tenant", "policies", "windows", "filter", "sample", "seed", "max_messages", "max_bytes"}
	askedMembers = []string{"name", "policy"}
)

// decode reads the body of a replay. Its problems are in the document.
func decode(text []byte) (*body, error) {
	d, err := request.Open(text)
	if err != nil {
		return nil, err
	}
	r := &body{Document: *d, replay: Stored{
		Sample: defaultSample, Seed: 1, MaxMessages: defaultLogMessages, MaxBytes: defaultBytes,
	}}
	given := false
	for name, value := range r.Fields(members) {
		given = given || name == "policies"
		r.set(name, value)
	}
	if !given {
		r.Wrong("/policies", request.InvalidRequest, "is missing: name at least one policy to measure")
	}
	r.checkSize()
	return r, nil
}

func (r *body) set(name string, value rawjson.Span) {
	switch name {
	case "tenant":
		r.tenant, _ = r.Text("/tenant", value, session.MaxIDBytes)
	case "policies":
		r.policies(value)
	case "windows":
		r.windows(value)
	case "filter":
		r.replay.Filter = ingest.Filter(&r.Document, value)
	case "sample":
		r.replay.Sample = int(r.Integer("/sample", value, 1, maxSample))
	case "seed":
		r.replay.Seed = r.Integer("/seed", value, 0, maxSeed)
	case "max_messages":
		r.replay.MaxMessages = r.Integer("/max_messages", value, 1, mostMessages)
	case "max_bytes":
		r.replay.MaxBytes = r.Integer("/max_bytes", value, 1, mostBytes)
	}
}

// windows reads the member windows: a list of tokens, none twice.
func (r *body) windows(value rawjson.Span) {
	spans, ok := r.Array("/windows", value)
	if ok && (len(spans) == 0 || len(spans) > maxWindows) {
		r.Wrong("/windows", request.InvalidRequest, "must contain 1 to %d windows, not %d: leave it out for each "+
			"session's own", maxWindows, len(spans))
		return
	}
	for i, span := range spans {
		pointer := request.PointerTo("/windows", i)
		window := int(r.Integer(pointer, span, session.MinWindowTokens, session.MaxWindowTokens))
		if slices.Contains(r.replay.Windows, window) {
			r.Wrong(pointer, request.InvalidRequest, "the window %d is there twice", window)
		}
		r.replay.Windows = append(r.replay.Windows, window)
	}
}

// policies reads the member policies. What the names stand for is resolved later.
func (r *body) policies(value rawjson.Span) {
	spans, ok := r.Array("/policies", value)
	if ok && (len(spans) == 0 || len(spans) > maxContenders) {
		r.Wrong("/policies", request.InvalidRequest, "must contain 1 to %d policies, not %d", maxContenders, len(spans))
		return
	}
	for i, span := range spans {
		asked, ok := r.one(request.PointerTo("/policies", i), span)
		if !ok {
			continue
		}
		if slices.ContainsFunc(r.asked, func(other askedPolicy) bool { return other.name == asked.name }) {
			r.Wrong(asked.pointer, request.InvalidRequest, "%q is there twice: give each its own name",
				spelling.Shorten(asked.name))
		}
		r.asked = append(r.asked, asked)
	}
}

// one reads an element of the member policies.
func (r *body) one(pointer string, value rawjson.Span) (asked askedPolicy, ok bool) {
	asked.pointer = pointer
	if r.Data[value.Start] == '"' {
		asked.name, ok = r.Text(pointer, value, maxContender)
		return asked, ok && r.named(pointer, asked.name)
	}
	if r.Data[value.Start] != '{' {
		r.Wrong(pointer, request.InvalidRequest, "must be the name of a policy, or an object with name and policy, "+
			"not %s", r.Kind(value))
		return asked, false
	}
	found := false
	for name, member := range r.Members(pointer, value, askedMembers) {
		switch name {
		case "name":
			found = true
			asked.name, ok = r.Text(pointer+"/name", member, maxContender)
			ok = ok && r.named(pointer+"/name", asked.name)
		case "policy":
			asked.inline, asked.document = true, member
		}
	}
	if !found {
		r.Wrong(pointer+"/name", request.InvalidRequest, "is missing: it tells the policies apart in the report")
	}
	return asked, ok
}

func (r *body) named(pointer, name string) bool {
	if strings.TrimSpace(name) == "" {
		r.Wrong(pointer, request.InvalidRequest, "the name must not be empty")
		return false
	}
	return true
}

// checkSize bounds what a replay measures: sessions, each under every contender in every window.
func (r *body) checkSize() {
	pairs := len(r.asked) * max(len(r.replay.Windows), 1)
	if n := r.replay.Sample * pairs; n > maxOutcomes && !r.Has("/sample") {
		r.Wrong("/sample", request.InvalidRequest, "%d sessions × %d policies × %d windows are %d measurements: the "+
			"limit is %d, so at most %d sessions", r.replay.Sample, len(r.asked), max(len(r.replay.Windows), 1), n,
			maxOutcomes, maxOutcomes/pairs)
	}
}

// resolve resolves the policies that a request asks for, as they are now. What is wrong with them is added to
// the document's problems.
func (h handlers) resolve(req *request.Request, r *body) error {
	for _, asked := range r.asked {
		c, err := h.contender(req, r, asked)
		var invalid *session.InvalidError
		if errors.As(err, &invalid) {
			r.Add("", err)
			continue
		}
		if err != nil {
			return err
		}
		r.replay.Contenders = append(r.replay.Contenders, c)
	}
	return nil
}

// contender resolves one policy: a document, a profile, a yardstick, or the tenant's default.
func (h handlers) contender(req *request.Request, r *body, asked askedPolicy) (c Contender, err error) {
	c.Name = asked.name
	switch {
	case asked.inline:
		return r.inline(asked, h.writers)
	case slices.Contains(policy.Profiles(), asked.name):
		c.Source = FromProfile
		p, err := policy.Profile(asked.name)
		c.Policy = p.Document()
		return c, err
	case slices.Contains(replay.Yardsticks(), asked.name):
		c.Source = FromYardstick
		return c, nil
	}
	c.Source = FromTenant
	version, ok := tenantVersion(asked.name)
	if !ok {
		return c, session.Invalid(asked.pointer, request.InvalidRequest, "there is no policy %q%s",
			spelling.Shorten(asked.name), spelling.Hint(asked.name, contenderNames()))
	}
	c.Policy, err = tenantDocument(req, version)
	if err == nil && c.Policy == nil {
		err = session.Invalid(asked.pointer, request.InvalidRequest, "the tenant's policy has no version %d: GET "+
			"/v1/policy/versions lists them", version)
	}
	return c, err
}

// contenderNames lists the names that stand for a policy.
func contenderNames() []string {
	return slices.Concat(policy.Profiles(), replay.Yardsticks(), []string{tenantsPolicy, tenantsPolicy + "@1"})
}

// inline resolves a document that stands in the request, as PUT /v1/policy would.
func (r *body) inline(asked askedPolicy, writers *policy.Writers) (c Contender, err error) {
	pointer := asked.pointer + "/policy"
	if _, ok := tenantVersion(asked.name); ok || slices.Contains(contenderNames(), asked.name) {
		return c, session.Invalid(asked.pointer+"/name", request.InvalidRequest,
			"%q is the name of another policy: choose one of your own for a document", asked.name)
	}
	if r.Data[asked.document.Start] != '{' {
		return c, session.Invalid(pointer, request.InvalidRequest, "must be an object, not %s", r.Kind(asked.document))
	}
	document := bytes.Clone(asked.document.Of(r.Data))
	p, err := writers.ResolveStored(document, nil, pointer)
	return Contender{Name: asked.name, Source: FromDocument, Patch: document, Policy: p.Document}, err
}

// tenantVersion returns the version of the tenant's policy that a name stands for, 0 for the present one.
func tenantVersion(name string) (version int, ok bool) {
	if name == tenantsPolicy {
		return 0, true
	}
	text, ok := strings.CutPrefix(name, tenantsPolicy+"@")
	version, err := strconv.Atoi(text)
	return version, ok && err == nil && version > 0 && strconv.Itoa(version) == text
}

// tenantDocument returns a version of the tenant's policy as a whole, nil if there is none; 0 is the present one.
func tenantDocument(req *request.Request, version int) ([]byte, error) {
	if version == 0 {
		found, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
		return found.Document, err
	}
	found, err := req.Store.PolicyVersions(req.Ctx, req.Tenant, int64(version)+1, 1)
	if err != nil || len(found) == 0 || found[0].Version != version {
		return nil, err
	}
	return found[0].Document, nil
}
