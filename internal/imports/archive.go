package imports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// readLine reads a line of an archive. What is wrong with the line is its outcome; an error ends the import.
func (f *feed) readLine(ctx context.Context, n int64, line archive.Line) (entry, error) {
	read := entry{Line: n, Outcome: protocol.LineChecked}
	kind, value := archive.KindOf(line.Text)
	// A policy holds for the sessions after it, not for those of the batch; pins are of messages that are stored.
	if kind == archive.TenantLine || kind == archive.EndLine && hasPins(value.Of(line.Text)) {
		if err := f.flush(ctx); err != nil {
			return read, err
		}
	}
	if damage := f.checker.Line(kind, line.Text); damage != nil {
		return rejected(n, damage.Error()), nil
	}
	if kind == archive.Unknown {
		return unknownLine(n, line), nil
	}
	err := f.readValue(ctx, kind, value.Of(line.Text), &read)
	var invalid *session.InvalidError
	if errors.As(err, &invalid) {
		return rejected(n, invalid.Error()), nil
	}
	return read, err
}

func (f *feed) readValue(ctx context.Context, kind archive.Kind, value []byte, read *entry) (err error) {
	d := &request.Document{Data: value}
	switch kind {
	case archive.ExportLine:
		for _, version := range d.Members("/export", rawjson.Value(value), []string{"version"}) {
			d.Integer("/export/version", version, 1, archive.Version)
		}
	case archive.TenantLine:
		read.Outcome, read.Detail, err = f.restorePolicy(ctx, d)
	case archive.SessionLine:
		read.Session, err = f.readSession(ctx, value)
	case archive.MessageLine:
		read.Message = readMessage(d, read.Line)
	case archive.EndLine:
		read.End = readEnd(d)
		err = f.restorePins(ctx, d, read)
	}
	if err != nil {
		return err
	}
	return d.Err()
}

func rejected(line int64, detail string) entry {
	return entry{Line: line, Outcome: protocol.LineRejected, Detail: detail}
}

// unknownLine returns why a line is not one of an archive.
func unknownLine(n int64, line archive.Line) entry {
	err := rawjson.Check(line.Text, rawjson.Limits{})
	switch {
	case line.Text == nil:
		return rejected(n, fmt.Sprintf("the line has %d bytes: the limit is %d", line.Bytes, archive.MaxLineBytes))
	case len(bytes.TrimSpace(line.Text)) == 0:
		return entry{Line: n, Outcome: protocol.LineSkipped, Detail: "the line is empty"}
	case err != nil:
		return rejected(n, "the line is not JSON: "+err.Error())
	}
	return rejected(n, "a line must be an object with one member, which is an object: export, tenant, session, "+
		"message, end or manifest")
}

// sameJSON reports whether two documents differ in white space only.
func sameJSON(a, b []byte) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, b) == nil && bytes.Equal(left.Bytes(), right.Bytes())
}

// restorePolicy gives the tenant the policy of the archive if the tenant has never set one: a file does not change how
// existing sessions are compacted.
func (f *feed) restorePolicy(ctx context.Context, d *request.Document) (protocol.LineOutcome, string, error) {
	var layer []byte
	for _, value := range d.Members("/tenant", rawjson.Value(d.Data), []string{"policy"}) {
		layer = bytes.Clone(value.Of(d.Data))
	}
	if err := d.Err(); err != nil || layer == nil {
		return protocol.LineSkipped, "", err
	}
	current, err := f.Store.TenantPolicy(ctx, f.Tenant)
	switch {
	case err != nil:
		return "", "", err
	case sameJSON(current.Patch, layer):
		return protocol.LineExists, "", nil
	case current.Version.Tenant > 1:
		return protocol.LineSkipped, "the tenant has set a policy and keeps it: PUT /v1/policy sets this one", nil
	}
	f.below = nil
	_, _, err = f.Store.ChangeTenantPolicy(ctx, f.Tenant, session.TenantPolicy{
		Edit: func(_, _ json.RawMessage) (session.Policy, error) {
			return policy.ResolveStored(layer, nil, "/policy")
		},
		Rebase:   ingest.Rebase,
		Expected: &current.Version.Tenant, ChangedBy: f.ChangedBy,
	})
	return protocol.LineCreated, "", err
}

// sessionFields are the members of a session in an archive.
var sessionFields = append([]string{"window_source", "usage", "created_at"}, ingest.NewSession...)

func (f *feed) readSession(ctx context.Context, data []byte) (*madeSession, error) {
	s, err := f.settings(ctx, data, sessionFields, nil)
	if err != nil {
		return nil, err
	}
	if s.ID == "" {
		s.Wrong("/id", request.InvalidRequest, "id is missing: it must be the id of the session")
	}
	made := &madeSession{ID: s.ID}
	for name, value := range s.Fields(sessionFields) {
		switch name {
		case "window_source":
			s.WindowSource = readWindowSource(&s.Document, value)
		case "usage":
			made.Tokens = readTokenHistory(&s.Document, value)
		case "created_at":
			made.CreatedAt = s.Time("/created_at", value)
		}
	}
	made.Change = s.Change
	return made, s.Err()
}

// defaultFields are the members of the settings that a request has for new sessions.
var defaultFields = []string{"model", "window_tokens", "metadata", "policy"}

// settings reads the settings of new sessions, whose model is one of writers. Those of an archive's sessions are nil:
// a policy that was in force elsewhere comes back as it is.
func (f *feed) settings(
	ctx context.Context, data []byte, known []string, writers *policy.Writers,
) (*ingest.Settings, error) {
	s, err := ingest.DecodeSettings(data, known)
	if err != nil {
		return nil, err
	}
	if s.HasPolicy() {
		if f.below == nil { // once for all sessions: the store puts their layers on the default that it finds then
			p, err := f.Store.TenantPolicy(ctx, f.Tenant)
			if err != nil {
				return nil, err
			}
			f.below = &session.PolicyLayers{Tenant: p.Patch}
		}
		s.ResolvePolicy(*f.below, writers)
	}
	s.ChangedBy = f.ChangedBy
	return s, s.Finish(f.Strict)
}

func readWindowSource(d *request.Document, value rawjson.Span) session.WindowSource {
	text, _ := d.Text("/window_source", value, session.MaxIDBytes)
	source := session.WindowSource(text)
	switch source {
	case "", session.WindowOfRequest, session.WindowOfModel, session.WindowOfDefault:
	default:
		d.Wrong("/window_source", request.InvalidRequest, "%q is unknown", spelling.Shorten(text))
	}
	return source
}

func readTokenHistory(d *request.Document, value rawjson.Span) *session.TokenHistory {
	history := &session.TokenHistory{}
	decoder := json.NewDecoder(bytes.NewReader(value.Of(d.Data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(history); err != nil {
		d.Wrong("/usage", request.InvalidRequest, "the usage cannot be read: %s", err)
	} else if history.Calibration < session.MinCalibration || history.Calibration > session.MaxCalibration {
		d.Wrong("/usage/calibration", request.InvalidRequest, "must be from %g to %g, not %g",
			session.MinCalibration, session.MaxCalibration, history.Calibration)
	}
	return history
}

var messageFields = []string{
	"session", "seq", "format", "client_id", "created_at", "removed_at", "removed_seq", "superseded_by", "body",
}

// readMessage reads a message of line n.
func readMessage(d *request.Document, n int64) *message {
	m := &message{}
	var body, client rawjson.Span
	for name, value := range d.Fields(messageFields) {
		switch name {
		case "session":
			m.Session, _ = d.Text("/session", value, session.MaxIDBytes)
		case "seq":
			m.Seq = d.Integer("/seq", value, 1, session.MaxSessionMessages)
		case "format":
			m.Format = d.ReadFormat(value)
		case "client_id":
			client = value
		case "created_at":
			m.CreatedAt = d.Time("/created_at", value)
		case "removed_at":
			m.RemovedAt = d.Time("/removed_at", value)
		case "removed_seq":
			m.RemovedSeq = d.Integer("/removed_seq", value, 1, session.MaxSessionMessages)
		case "superseded_by":
			m.SupersededBy = d.Integer("/superseded_by", value, 1, session.MaxSessionMessages)
		case "body":
			body = value
		}
	}
	checkMessage(d, m, body)
	if len(d.Problems) == 0 {
		readBody(d, m, body)
		nameMessage(d, m, client, n)
	}
	return m
}

// checkMessage reports what is missing.
func checkMessage(d *request.Document, m *message, body rawjson.Span) {
	if problem := session.CheckID(m.Session); problem != "" && !d.Has("/session") {
		d.Wrong("/session", request.InvalidRequest, "the session's id %s", problem)
	}
	ingest.RequireFormat(d, m.Format)
	if body == (rawjson.Span{}) {
		d.Wrong("/body", request.InvalidRequest, "body is missing: it must be the message, or a string that "+
			"contains it")
	}
	if (m.RemovedAt == nil) != (m.RemovedSeq == 0) || m.RemovedSeq > 0 && m.RemovedSeq <= m.Seq {
		d.Wrong("/removed_seq", request.InvalidRequest,
			"removed_at and removed_seq must come together, and removed_seq must be larger than seq")
	}
	if m.SupersededBy > 0 && (m.RemovedSeq == 0 || m.SupersededBy < m.RemovedSeq) {
		d.Wrong("/superseded_by", request.InvalidRequest,
			"must come with removed_seq, and not be smaller than it")
	}
}

// readBody reads the message, which may be quoted as a string.
func readBody(d *request.Document, m *message, at rawjson.Span) {
	body := at.Of(d.Data)
	if body[0] == '"' {
		text, whole := rawjson.Unquote(nil, body)
		if !whole {
			d.Wrong("/body", request.InvalidRequest, "the string must not contain half of a surrogate pair")
			return
		}
		body = text
	}
	read, err := ingest.Message(m.Format, body)
	if err != nil {
		d.Add("/body", err)
	}
	m.NewMessage = read
}

// nameMessage gives a message its client id. A message with neither a client id nor a seq is named by its line and its
// bytes, so that importing it twice stores it once.
func nameMessage(d *request.Document, m *message, client rawjson.Span, n int64) {
	switch {
	case client != (rawjson.Span{}):
		id, ok := d.Text("/client_id", client, session.MaxClientIDBytes)
		if ok && id == "" {
			d.Wrong("/client_id", request.InvalidRequest, "must not be empty: leave it out for none")
		}
		m.ClientID = id
	case m.Seq == 0:
		sum := sha256.Sum256(m.Body)
		m.ClientID = "l" + strconv.FormatInt(n, 10) + "-" + hex.EncodeToString(sum[:8])
	}
}

func readEnd(d *request.Document) *archive.End {
	end := &archive.End{}
	if err := json.Unmarshal(d.Data, end); err != nil {
		d.Wrong("", request.InvalidRequest, "the end of the session cannot be read: %s", err)
	}
	if end.LastSeq < 0 || end.LastSeq > session.MaxSessionMessages || session.CheckID(end.Session) != "" {
		d.Wrong("/last_seq", request.InvalidRequest, "must be from 0 to %d, not %d", session.MaxSessionMessages,
			end.LastSeq)
	}
	return end
}
