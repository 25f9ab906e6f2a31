package api

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// The ranges of a session's numbers.
const (
	minWindowTokens   = 1_000
	maxWindowTokens   = 10_000_000
	maxOverheadTokens = 10_000_000
)

// settings are what a caller sets on a session.
type settings struct {
	session.Change
	id     string       // of a new session, if its body names it
	policy rawjson.Span // of the body
}

// The members that the routes of a session know.
var (
	oldSession   = []string{"model", "window_tokens", "overhead_tokens", "metadata", "policy"}
	newSession   = append([]string{"id", "format"}, oldSession...)
	namedSession = newSession
)

// settings reads a request that sets something on the session that its path names.
func (x *exchange) settings(known []string, windows *models.Registry, below layersBelow) (at session.Address, change session.Change, id *session.Idempotency, err error) {
	if at, err = x.addressAlone(); err != nil {
		return at, change, nil, err
	}
	body, err := readBody(x)
	if err != nil {
		return at, change, nil, err
	}
	defer body.free()
	if id, err = x.idempotency(body.b); err != nil {
		return at, change, nil, err
	}
	found, err := decodeSettings(body.b, known, windows, func() (session.PolicyLayers, error) { return below(x, at) })
	found.ChangedBy = x.key
	if err == nil && found.id != "" && found.id != at.ID {
		err = session.Invalid("/id", invalidRequest, "id is %q, but the path says %q: leave it out", found.id, at.ID)
	}
	return at, found.Change, id, err
}

// emptyBody reads the Idempotency-Key of a request that has nothing in its body.
func (x *exchange) emptyBody() (*session.Idempotency, error) {
	body, err := readBody(x)
	if err != nil {
		return nil, err
	}
	defer body.free()
	if _, err := decodeSettings(body.b, nil, nil, nil); err != nil {
		return nil, err
	}
	return x.idempotency(body.b)
}

// decodeSettings reads the settings of a session; no body sets nothing. windows knows the models' windows; below reads
// what a policy is put on top of.
func decodeSettings(body []byte, known []string, windows *models.Registry, below func() (session.PolicyLayers, error)) (settings, error) {
	if len(body) == 0 {
		return settings{}, nil
	}
	d := &document{data: body}
	if err := d.check(rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}); err != nil {
		return settings{}, err
	}
	var s settings
	for name, value := range d.members("", rawjson.Value(body), known) {
		s.set(d, name, value)
	}
	if err := s.editPolicy(d, below); err != nil {
		return settings{}, err
	}
	s.setWindow(d, windows)
	s.checkOverhead(d, slices.Contains(known, "format"))
	return s, d.err()
}

// setWindow gives a session whose model is named the window of that model, unless the request says another.
func (s *settings) setWindow(d *document, windows *models.Registry) {
	switch {
	case s.WindowTokens != nil:
		s.WindowSource = session.WindowOfRequest
	case s.Model != nil && *s.Model != "" && !d.has("/model"):
		if window, ok := d.windowOf(windows, "/model", *s.Model); ok {
			s.WindowTokens, s.WindowSource = &window, session.WindowOfModel
		}
	}
}

// checkOverhead requires that the window has room for more than the overhead, as far as this request says both. A
// session that is new has the default for what it does not say.
func (s *settings) checkOverhead(d *document, isNew bool) {
	window := session.DefaultWindowTokens
	switch {
	case s.OverheadTokens == nil || len(d.problems) > 0 || s.WindowTokens == nil && !isNew:
		return
	case s.WindowTokens != nil:
		window = *s.WindowTokens
	}
	if *s.OverheadTokens >= window {
		d.wrong("/overhead_tokens", invalidRequest, "%d is not less than window_tokens, which is %d", *s.OverheadTokens, window)
	}
}

func (s *settings) set(d *document, name string, value rawjson.Span) {
	switch name {
	case "id":
		var ok bool
		if s.id, ok = d.text("/id", value, session.MaxIDBytes); ok && wrongID(s.id) != "" {
			d.wrong("/id", invalidRequest, "the session's id %s: leave it out to have one made", wrongID(s.id))
		}
	case "format":
		format := d.readFormat(value)
		s.Format = &format
	case "model":
		model, _ := d.text("/model", value, session.MaxIDBytes)
		s.Model = &model
	case "window_tokens":
		n := int(d.integer("/window_tokens", value, minWindowTokens, maxWindowTokens))
		s.WindowTokens = &n
	case "overhead_tokens":
		n := int(d.integer("/overhead_tokens", value, 0, maxOverheadTokens))
		s.OverheadTokens = &n
	case "metadata":
		s.Metadata = d.metadata(value)
	case "policy":
		s.policy = value
	}
}

// metadata reads an object of a few short strings. The answer is a copy: the body's memory goes to another request.
func (d *document) metadata(value rawjson.Span) []byte {
	if d.data[value.Start] != '{' {
		d.wrong("/metadata", invalidRequest, "an object of strings is needed, this is %s", kindOf(d.data[value.Start]))
		return nil
	}
	seen := map[string]bool{}
	for key, member := range rawjson.Members(d.data, value.Start) {
		text, ok := rawjson.Unquote(nil, key.Of(d.data))
		name := string(text)
		pointer := "/metadata/" + escapePointer(shorten(name))
		switch {
		case !ok || !storable(name):
			d.wrong(pointer, invalidRequest, "the key holds a NUL character or half of a surrogate pair")
		case name == "" || utf8.RuneCountInString(name) > session.MaxMetadataKey:
			d.wrong(pointer, invalidRequest, "the key has %d characters: 1 to %d are possible", utf8.RuneCountInString(name), session.MaxMetadataKey)
		case seen[name]:
			d.wrong(pointer, invalidJSON, "%s is there twice", shorten(name))
		}
		seen[name] = true
		if text, _ := d.text(pointer, member, 4*session.MaxMetadataValue); utf8.RuneCountInString(text) > session.MaxMetadataValue {
			d.wrong(pointer, invalidRequest, "the value has %d characters: %d are the most", utf8.RuneCountInString(text), session.MaxMetadataValue)
		}
	}
	if len(seen) > session.MaxMetadataKeys {
		d.wrong("/metadata", invalidRequest, "metadata has %d keys: %d are the most", len(seen), session.MaxMetadataKeys)
	}
	return append([]byte(nil), value.Of(d.data)...)
}

// storable reports whether PostgreSQL can keep the text.
func storable(text string) bool { return strings.IndexByte(text, 0) < 0 }

// escapeID writes a session's id as one segment of a path.
func escapeID(id string) string { return url.PathEscape(id) }
