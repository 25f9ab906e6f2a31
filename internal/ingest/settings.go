package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// MaxOverheadTokens is the largest overhead of a session.
const MaxOverheadTokens = 10_000_000

// Settings are what a caller sets on a session. Read them in three steps: DecodeSettings, ResolvePolicy if HasPolicy,
// and Finish.
type Settings struct {
	request.Document
	session.Change
	ID     string // of a new session, if its body names it
	policy rawjson.Span
	known  []string
}

// The members that the routes of a session know.
var (
	NewSession = []string{
		"id", "format", "model", "window_tokens", "overhead_tokens", "metadata", "policy", "retention",
	}
	OldSession = append(slices.Clone(NewSession[2:]), "refused", "refused_tokens")

	// AppendedTo are those of the session that an append makes, which its path names.
	AppendedTo = NewSession[1:]
)

// DecodeSettings reads the settings of a session, whose members are known; no body sets nothing.
func DecodeSettings(body []byte, known []string) (*Settings, error) {
	s := &Settings{known: known}
	if len(body) == 0 {
		return s, nil
	}
	d, err := request.Open(body)
	if err != nil {
		return nil, err
	}
	s.Document = *d
	for name, value := range s.Fields(known) {
		s.set(name, value)
	}
	return s, nil
}

func (s *Settings) set(name string, value rawjson.Span) {
	switch name {
	case "id":
		id, ok := s.Text("/id", value, session.MaxIDBytes)
		s.ID = id
		if problem := session.CheckID(id); ok && problem != "" {
			s.Wrong("/id", request.InvalidRequest, "the session's id %s: leave it out to have one made", problem)
		}
	case "format":
		s.Format = new(s.ReadFormat(value))
	case "model":
		model, _ := s.Text("/model", value, session.MaxIDBytes)
		s.Model = &model
	case "window_tokens":
		s.WindowTokens = new(int(s.Integer("/window_tokens", value, session.MinWindowTokens, session.MaxWindowTokens)))
	case "overhead_tokens":
		s.OverheadTokens = new(int(s.Integer("/overhead_tokens", value, 0, MaxOverheadTokens)))
	case "metadata":
		s.Metadata = ReadMetadata(&s.Document, value)
	case "policy":
		s.policy = value
	case "retention":
		if s.DefaultRetention = s.IsNull(value); !s.DefaultRetention {
			s.Retention = new(ReadRetention(&s.Document, "/retention", value))
		}
	case "refused":
		code, ok := s.Text("/refused", value, session.MaxIDBytes)
		if s.Refused = code == session.TooLong; ok && !s.Refused {
			s.Wrong("/refused", request.InvalidRequest, "must be %q, not %q", session.TooLong, spelling.Shorten(code))
		}
	case "refused_tokens":
		s.RefusedTokens = s.Integer("/refused_tokens", value, 1, MaxOverheadTokens)
	}
}

// ReadRetention reads when sessions expire, and what becomes of them; a time that is null or left out is never, as far
// as operators leave that.
func ReadRetention(d *request.Document, pointer string, value rawjson.Span) (r session.Retention) {
	if !isTimes(d, pointer, value) {
		return r
	}
	members := map[string]**int64{
		"idle_seconds": &r.IdleSeconds, "max_age_seconds": &r.AgeSeconds, "archive_max_age_seconds": &r.ArchiveSeconds,
	}
	names := []string{"idle_seconds", "max_age_seconds", "then", "archive_max_age_seconds"}
	for name, value := range d.Members(pointer, value, names) {
		switch {
		case name == "then":
			text, _ := d.Text(pointer+"/then", value, 16)
			r.Then = session.Then(text)
		case !d.IsNull(value):
			*members[name] = secondsOf(d, pointer+"/"+name, value)
		}
	}
	checkThen(d, pointer, &r)
	return r
}

// ReadRetentionBound reads the longest retention that operators leave a tenant; a time that is null or left out is not
// bounded.
func ReadRetentionBound(d *request.Document, pointer string, value rawjson.Span) (b session.RetentionBound) {
	if !isTimes(d, pointer, value) {
		return b
	}
	members := map[string]**int64{"idle_seconds": &b.IdleSeconds, "max_age_seconds": &b.AgeSeconds}
	for name, value := range d.Members(pointer, value, []string{"idle_seconds", "max_age_seconds"}) {
		if !d.IsNull(value) {
			*members[name] = secondsOf(d, pointer+"/"+name, value)
		}
	}
	return b
}

// isTimes reports whether a value is an object, as the times of a retention are.
func isTimes(d *request.Document, pointer string, value rawjson.Span) bool {
	if d.Data[value.Start] == '{' {
		return true
	}
	d.Wrong(pointer, request.InvalidRequest, "must be an object like {\"idle_seconds\":2592000}, not %s", d.Kind(value))
	return false
}

func secondsOf(d *request.Document, pointer string, value rawjson.Span) *int64 {
	return new(d.Integer(pointer, value, session.MinRetention, session.MaxRetention))
}

// checkThen requires that a retention says of expired sessions what can become of them, and of archives only if there
// are any. One that does not say it erases.
func checkThen(d *request.Document, pointer string, r *session.Retention) {
	switch r.Then {
	case "":
		r.Then = session.ThenErase
	case session.ThenErase, session.ThenArchive:
	default:
		d.Wrong(pointer+"/then", request.InvalidRequest, "must be \"erase\" or \"archive\"")
	}
	if r.Then == session.ThenErase && r.ArchiveSeconds != nil {
		d.Wrong(pointer+"/archive_max_age_seconds", request.InvalidRequest,
			"is how long archives are kept: it needs \"then\":\"archive\"")
	}
}

// ChangesRetention reports whether the settings say when the session expires.
func (s *Settings) ChangesRetention() bool { return s.Retention != nil || s.DefaultRetention }

// HasPolicy reports whether the settings change the session's policy, so that ResolvePolicy must be called.
func (s *Settings) HasPolicy() bool { return !isNone(s.policy) }

// Rebase puts a session's own layer on top of a new one of its tenant.
func Rebase(tenant, own json.RawMessage) (session.Policy, error) {
	return policy.ResolveStored(tenant, own, "")
}

// ResolvePolicy reads the member policy: null restores the tenant's default, an object is merged into the session's own
// layer. It is tried on below and held to writers, so that its problems are reported with those of other members; the
// store does it again on the layers that it finds then.
func (s *Settings) ResolvePolicy(below session.PolicyLayers, writers *policy.Writers) {
	if PolicyOver(&s.Document, s.policy, below, writers) == nil {
		return
	}
	if s.DefaultPolicy = s.IsNull(s.policy); s.DefaultPolicy {
		return
	}
	document := bytes.Clone(s.policy.Of(s.Data))
	s.EditPolicy = func(tenant, own json.RawMessage) (session.Policy, error) {
		return writers.ResolveStored(tenant, policy.Merge(own, document), "/policy")
	}
}

// Finish chooses the window by the model, and returns the problems of the settings. A strict request must name a model
// that is known, or send the window.
func (s *Settings) Finish(strict bool) error {
	switch {
	case s.WindowTokens != nil:
		s.WindowSource = session.WindowOfRequest
	case s.Model != nil && *s.Model != "" && !s.Has("/model"):
		window, source := WindowOf(&s.Document, *s.Model, strict)
		s.WindowTokens, s.WindowSource = &window, source
	}
	if s.OverheadTokens != nil && len(s.Problems) == 0 {
		s.checkOverhead()
	}
	if s.RefusedTokens > 0 && !s.Has("/refused") && !s.Refused {
		s.Wrong("/refused", request.InvalidRequest, "is missing: refused_tokens are those of a refused request")
	}
	return s.Err()
}

// checkOverhead requires that the overhead is less than the window, if this request sets both. A new session has the
// default window unless it sets one.
func (s *Settings) checkOverhead() {
	switch {
	case s.WindowTokens != nil:
		CheckOverhead(&s.Document, *s.OverheadTokens, *s.WindowTokens)
	case slices.Contains(s.known, "format"):
		CheckOverhead(&s.Document, *s.OverheadTokens, session.DefaultWindowTokens)
	}
}

// CheckOverhead requires that the overhead is less than the window.
func CheckOverhead(d *request.Document, overhead, window int) {
	if overhead >= window {
		d.Wrong("/overhead_tokens", request.InvalidRequest, "must be less than window_tokens, which is %d, not %d",
			window, overhead)
	}
}

// WindowOf returns the window of a model. One that is not known has the default and a warning, and is a problem of a
// strict request.
func WindowOf(d *request.Document, model string, strict bool) (tokens int, source session.WindowSource) {
	if m, ok := models.Current().Find(model); ok {
		return m.Window(), session.WindowOfModel
	}
	tell := d.Warn
	if strict {
		tell = d.Wrong
	}
	tell("/model", request.UnknownModel, "%s", UnknownModel(model, fmt.Sprintf("it is taken to be %d tokens; %s",
		session.DefaultWindowTokens, adviceOnWindows)))
	return session.DefaultWindowTokens, session.WindowOfDefault
}

const adviceOnWindows = "send window_tokens with it, or add the model to the file that VARVE_MODELS names; " +
	"GET /v1/models lists all that are known"

// UnknownModel says that a model is not known, which others have similar names, and what to do.
func UnknownModel(model, advice string) string {
	suggestion := ""
	if near := models.Current().Near(model, 3); len(near) > 0 {
		suggestion = " (did you mean " + strings.Join(near, " or ") + "?)"
	}
	return fmt.Sprintf("the window of model %q is not known%s: %s", spelling.Shorten(model), suggestion, advice)
}

// WarningsOf returns what the owner of a session should know of its settings.
func WarningsOf(s *session.Session) []session.Warning {
	if s.Model == "" || s.WindowSource != session.WindowOfDefault {
		return nil
	}
	d := request.Document{}
	WindowOf(&d, s.Model, false)
	return d.Warnings
}

// ReadMetadata reads an object of a few short strings. It returns a copy, which outlives the request.
func ReadMetadata(d *request.Document, value rawjson.Span) []byte {
	if d.Data[value.Start] != '{' {
		d.Wrong("/metadata", request.InvalidRequest, "must be an object of strings, not %s", d.Kind(value))
		return nil
	}
	seen := map[string]bool{}
	for key, member := range rawjson.Members(d.Data, value.Start) {
		text, ok := rawjson.Unquote(nil, key.Of(d.Data))
		name := string(text)
		pointer := "/metadata/" + spelling.EscapePointer(spelling.Shorten(name))
		switch {
		case !ok || strings.IndexByte(name, 0) >= 0:
			d.Wrong(pointer, request.InvalidRequest, "the key must not contain a NUL character or half of a "+
				"surrogate pair")
		case name == "" || utf8.RuneCountInString(name) > session.MaxMetadataKey:
			d.Wrong(pointer, request.InvalidRequest, "the key must have 1 to %d characters, not %d",
				session.MaxMetadataKey, utf8.RuneCountInString(name))
		case seen[name]:
			d.Wrong(pointer, request.InvalidJSON, "the member %q appears twice", spelling.Shorten(name))
		}
		seen[name] = true
		content, _ := d.Text(pointer, member, 4*session.MaxMetadataValue)
		if n := utf8.RuneCountInString(content); n > session.MaxMetadataValue {
			d.Wrong(pointer, request.InvalidRequest, "the value has %d characters: the limit is %d", n,
				session.MaxMetadataValue)
		}
	}
	if len(seen) > session.MaxMetadataKeys {
		d.Wrong("/metadata", request.InvalidRequest, "metadata has %d keys: the limit is %d", len(seen),
			session.MaxMetadataKeys)
	}
	return bytes.Clone(value.Of(d.Data))
}

// PolicyOver reads the member policy as the whole policy that a session would have with it: an object is merged into
// the session's own layer, which is held to writers, null is the tenant's default. It returns nil if the policy has
// problems, which it adds to the document's.
func PolicyOver(
	d *request.Document, value rawjson.Span, below session.PolicyLayers, writers *policy.Writers,
) *policy.Policy {
	switch d.Data[value.Start] {
	case '{':
		p, _, err := writers.Resolve(below.Tenant, policy.Merge(below.Own, value.Of(d.Data)), "/policy")
		return orProblems(d, p, err)
	case 'n':
		return TenantPolicy(d, below)
	}
	d.Wrong("/policy", request.InvalidRequest, "must be an object or null, not %s", d.Kind(value))
	return nil
}

// TenantPolicy returns the policy of a session that has none of its own.
func TenantPolicy(d *request.Document, below session.PolicyLayers) *policy.Policy {
	p, _, err := policy.Resolve(below.Tenant, nil, "")
	return orProblems(d, p, err)
}

// orProblems returns the policy, nil if there is an error, which it adds to the document's problems.
func orProblems(d *request.Document, p policy.Policy, err error) *policy.Policy {
	if err != nil {
		d.Add("", err)
		return nil
	}
	return &p
}
