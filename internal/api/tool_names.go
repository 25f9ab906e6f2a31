package api

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// nameTools handles POST /v1/tools/names: the names that tools have in views.
func (s *Server) nameTools(req *request.Request) error {
	b, err := decodeToolNames(req.Body())
	if err != nil {
		return err
	}
	if b.options.Dialect == "" {
		b.options.Dialect = provider.Dialect(models.Current().Dialect(b.options.Model))
	}
	answer := protocol.ToolNames{Format: b.format, ToolNames: map[string]string{}}
	for _, name := range b.names {
		if to := wire.ToolName(b.format, name, b.options); to != name {
			answer.ToolNames[name] = to
		}
	}
	return req.JSON(http.StatusOK, answer)
}

// toolNamesBody is the body of POST /v1/tools/names.
type toolNamesBody struct {
	format  session.Format
	names   []string
	options wire.Options
}

func decodeToolNames(body []byte) (b toolNamesBody, err error) {
	d, err := request.Open(body)
	if err != nil {
		return b, err
	}
	for name, value := range d.Fields([]string{"format", "model", "dialect", "names"}) {
		switch name {
		case "format":
			b.format = d.ReadFormat(value)
		case "model":
			b.options.Model, _ = d.Text("/model", value, session.MaxIDBytes)
		case "dialect":
			dialect, _ := d.Text("/dialect", value, session.MaxIDBytes)
			b.options.Dialect = provider.Dialect(dialect)
		case "names":
			b.names = readToolNames(d, value)
		}
	}
	if b.format == "" && !d.Has("/format") {
		d.Wrong("/format", request.InvalidRequest, "format is missing: it must be %s", request.Formats())
	}
	if b.names == nil && !d.Has("/names") {
		d.Wrong("/names", request.InvalidRequest, "names is missing: it must be an array of names of tools")
	}
	known := provider.DialectsOf(b.format)
	if dialect := b.options.Dialect; dialect != "" && b.format.Valid() && !slices.Contains(known, dialect) {
		d.Wrong("/dialect", request.InvalidRequest, "%s has no dialect %q: it has %s", b.format,
			spelling.Shorten(string(dialect)), cmp.Or(provider.Join(known), "none, leave dialect out"))
	}
	return b, d.Err()
}

// The limits of POST /v1/tools/names: no provider takes as many tools, and no log has longer names.
const (
	maxToolNames     = 1000
	maxToolNameBytes = 4096
)

func readToolNames(d *request.Document, value rawjson.Span) []string {
	spans, ok := d.Array("/names", value)
	if ok && len(spans) > maxToolNames {
		d.Wrong("/names", request.InvalidRequest, "there are %d names: the limit is %d", len(spans), maxToolNames)
		return nil
	}
	names := make([]string, len(spans))
	for i, span := range spans {
		names[i], _ = d.Text(request.PointerTo("/names", i), span, maxToolNameBytes)
	}
	return names
}
