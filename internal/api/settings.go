package api

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/api/request"
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

// settingsOf reads a request that sets something on the session that its path names.
func settingsOf(req *request.Request, known []string, windows *models.Registry, below layersBelow) (at session.Address, change session.Change, id *session.Idempotency, err error) {
	req.Query()
	at = req.Address()
	body := req.Body()
	id = req.Idempotency()
	if err := req.Err(); err != nil {
		return at, change, nil, err
	}
	found, err := decodeSettings(body, known, windows, func() (session.PolicyLayers, error) { return below(req, at) })
	found.ChangedBy = req.KeyDigest
	if err == nil && found.id != "" && found.id != at.ID {
		err = session.Invalid("/id", request.InvalidRequest, "id is %q, but the path names %q: leave it out", found.id, at.ID)
	}
	return at, found.Change, id, err
}

// decodeSettings reads the settings of a session; no body sets nothing. windows knows the models' windows; below reads
// what a policy is put on top of.
func decodeSettings(body []byte, known []string, windows *models.Registry, below func() (session.PolicyLayers, error)) (settings, error) {
	if len(body) == 0 {
		return settings{}, nil
	}
	d, err := request.Open(body)
	if err != nil {
		return settings{}, err
	}
	var s settings
	for name, value := range d.Members("", rawjson.Value(body), known) {
		s.set(d, name, value)
	}
	if err := s.editPolicy(d, below); err != nil {
		return settings{}, err
	}
	s.setWindow(d, windows)
	s.checkOverhead(d, slices.Contains(known, "format"))
	return s, d.Err()
}

// setWindow gives a session whose model is named the window of that model, unless the request says another.
func (s *settings) setWindow(d *request.Document, windows *models.Registry) {
	switch {
	case s.WindowTokens != nil:
		s.WindowSource = session.WindowOfRequest
	case s.Model != nil && *s.Model != "" && !d.Has("/model"):
		if window, ok := windowOf(d, windows, "/model", *s.Model); ok {
			s.WindowTokens, s.WindowSource = &window, session.WindowOfModel
		}
	}
}

// checkOverhead requires that the window has room for more than the overhead, as far as this request says both. A
// session that is new has the default for what it does not say.
func (s *settings) checkOverhead(d *request.Document, isNew bool) {
	window := session.DefaultWindowTokens
	switch {
	case s.OverheadTokens == nil || len(d.Problems) > 0 || s.WindowTokens == nil && !isNew:
		return
	case s.WindowTokens != nil:
		window = *s.WindowTokens
	}
	if *s.OverheadTokens >= window {
		d.Wrong("/overhead_tokens", request.InvalidRequest, "%d is not less than window_tokens, which is %d", *s.OverheadTokens, window)
	}
}

func (s *settings) set(d *request.Document, name string, value rawjson.Span) {
	switch name {
	case "id":
		var ok bool
		if s.id, ok = d.Text("/id", value, session.MaxIDBytes); ok && session.CheckID(s.id) != "" {
			d.Wrong("/id", request.InvalidRequest, "the session's id %s: leave it out to have one made", session.CheckID(s.id))
		}
	case "format":
		format := d.Format(value)
		s.Format = &format
	case "model":
		model, _ := d.Text("/model", value, session.MaxIDBytes)
		s.Model = &model
	case "window_tokens":
		n := int(d.Integer("/window_tokens", value, minWindowTokens, maxWindowTokens))
		s.WindowTokens = &n
	case "overhead_tokens":
		n := int(d.Integer("/overhead_tokens", value, 0, maxOverheadTokens))
		s.OverheadTokens = &n
	case "metadata":
		s.Metadata = readMetadata(d, value)
	case "policy":
		s.policy = value
	}
}

// metadata reads an object of a few short strings. The answer is a copy: the body's memory goes to another request.
func readMetadata(d *request.Document, value rawjson.Span) []byte {
	if d.Data[value.Start] != '{' {
		d.Wrong("/metadata", request.InvalidRequest, "an object of strings is needed, this is %s", d.Kind(value))
		return nil
	}
	seen := map[string]bool{}
	for key, member := range rawjson.Members(d.Data, value.Start) {
		text, ok := rawjson.Unquote(nil, key.Of(d.Data))
		name := string(text)
		pointer := "/metadata/" + request.EscapePointer(request.Shorten(name))
		switch {
		case !ok || !storable(name):
			d.Wrong(pointer, request.InvalidRequest, "the key holds a NUL character or half of a surrogate pair")
		case name == "" || utf8.RuneCountInString(name) > session.MaxMetadataKey:
			d.Wrong(pointer, request.InvalidRequest, "the key has %d characters: 1 to %d are possible", utf8.RuneCountInString(name), session.MaxMetadataKey)
		case seen[name]:
			d.Wrong(pointer, request.InvalidJSON, "%s is there twice", request.Shorten(name))
		}
		seen[name] = true
		if text, _ := d.Text(pointer, member, 4*session.MaxMetadataValue); utf8.RuneCountInString(text) > session.MaxMetadataValue {
			d.Wrong(pointer, request.InvalidRequest, "the value has %d characters: %d are the most", utf8.RuneCountInString(text), session.MaxMetadataValue)
		}
	}
	if len(seen) > session.MaxMetadataKeys {
		d.Wrong("/metadata", request.InvalidRequest, "metadata has %d keys: %d are the most", len(seen), session.MaxMetadataKeys)
	}
	return append([]byte(nil), value.Of(d.Data)...)
}

// storable reports whether PostgreSQL can keep the text.
func storable(text string) bool { return strings.IndexByte(text, 0) < 0 }

// escapeID writes a session's id as one segment of a path.
func escapeID(id string) string { return url.PathEscape(id) }
