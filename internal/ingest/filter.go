package ingest

import (
	"encoding/json"
	"math"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// maxFilteredSessions is how many sessions a filter may name.
const maxFilteredSessions = 1000

var filterMembers = []string{"sessions", "metadata", "created_before", "created_after", "min_tokens",
	"policy_version_below", "engine_version_below", "model", "format", "forked_from", "updated_after",
	"over_window", "failing", "percent"}

// Filter reads a filter of sessions. Its problems are in the document.
func Filter(d *request.Document, value rawjson.Span) (f session.SessionFilter) {
	for name, member := range d.Members("/filter", value, filterMembers) {
		setFilter(d, &f, name, member)
	}
	if f.CreatedBefore != nil && f.CreatedAfter != nil && !f.CreatedAfter.Before(*f.CreatedBefore) {
		d.Wrong("/filter/created_after", request.InvalidRequest,
			"must be before created_before: no session is between them")
	}
	return f
}

func setFilter(d *request.Document, f *session.SessionFilter, name string, member rawjson.Span) {
	pointer := "/filter/" + name
	switch name {
	case "sessions":
		f.Sessions = sessionIDs(d, pointer, member)
	case "metadata":
		f.Metadata = metadataIn(d, member)
	case "created_before":
		f.CreatedBefore = d.Time(pointer, member)
	case "created_after":
		f.CreatedAfter = d.Time(pointer, member)
	case "updated_after":
		f.UpdatedAfter = d.Time(pointer, member)
	case "min_tokens":
		f.MinTokens = new(d.Integer(pointer, member, 0, math.MaxInt32))
	case "policy_version_below":
		f.PolicyVersionBelow = new(d.Integer(pointer, member, 1, math.MaxInt32))
	case "engine_version_below":
		f.EngineVersionBelow = new(d.Integer(pointer, member, 1, math.MaxInt32))
	case "model":
		f.Model = named(d, pointer, member)
	case "forked_from":
		f.ForkedFrom = named(d, pointer, member)
	case "format":
		f.Format = formatIn(d, pointer, member)
	case "over_window":
		f.OverWindow = d.Boolean(pointer, member)
	case "percent":
		f.Percent = int(d.Integer(pointer, member, 1, 100))
	case "failing":
		f.Failing = d.Boolean(pointer, member)
	}
}

// metadataIn reads the metadata that sessions must have.
func metadataIn(d *request.Document, value rawjson.Span) json.RawMessage {
	part := &request.Document{Data: d.Data}
	metadata := ReadMetadata(part, value)
	if err := part.Err(); err != nil {
		d.Add("/filter", err)
	}
	return metadata
}

// named reads a name, which is not empty.
func named(d *request.Document, pointer string, value rawjson.Span) string {
	text, ok := d.Text(pointer, value, session.MaxIDBytes)
	if ok && text == "" {
		d.Wrong(pointer, request.InvalidRequest, "must not be empty: leave it out for all")
	}
	return text
}

func formatIn(d *request.Document, pointer string, value rawjson.Span) session.Format {
	text, ok := d.Text(pointer, value, session.MaxIDBytes)
	if ok && !session.Format(text).Valid() {
		d.Wrong(pointer, request.InvalidRequest, "must be %s, not %q", request.Formats(), spelling.Shorten(text))
		return ""
	}
	return session.Format(text)
}

// sessionIDs reads ids of sessions. Those that name none find none.
func sessionIDs(d *request.Document, pointer string, value rawjson.Span) (ids []string) {
	spans, ok := d.Array(pointer, value)
	if ok && (len(spans) == 0 || len(spans) > maxFilteredSessions) {
		d.Wrong(pointer, request.InvalidRequest, "must contain 1 to %d ids, not %d: leave it out for all sessions",
			maxFilteredSessions, len(spans))
		return nil
	}
	for i, span := range spans {
		if id, ok := d.Text(request.PointerTo(pointer, i), span, session.MaxIDBytes); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
