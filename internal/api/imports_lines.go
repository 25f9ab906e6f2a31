package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// read makes an ImportLine of a line of an archive. What is wrong with the line is its outcome; an error ends the import.
func (f *feed) read(n int64, line archive.Line) (session.ImportLine, error) {
	read := session.ImportLine{Line: n, Outcome: session.LineChecked}
	kind, value := archive.KindOf(line.Text)
	if kind == archive.TenantLine {
		if err := f.flush(); err != nil { // it holds for the sessions behind it, and is no part of the batch before it
			return read, err
		}
	}
	damage := f.checker.Line(kind, line.Text)
	if damage != nil {
		return rejected(read, damage.Error()), nil
	}
	d := &request.Document{Data: value.Of(line.Text)}
	var err error
	switch kind {
	case archive.ExportLine:
		archiveVersion(d)
	case archive.TenantLine:
		read.Outcome, read.Detail, err = f.tenantPolicy(d)
	case archive.SessionLine:
		read.Session, err = f.session(d)
	case archive.MessageLine:
		read.Message = readArchived(d, n)
	case archive.EndLine:
		read.End = archivedEnd(d)
	case archive.Unknown:
		return unknownLine(read, line), nil
	}
	var invalid *session.InvalidError
	if err == nil {
		err = d.Err()
	}
	if errors.As(err, &invalid) {
		return rejected(read, invalid.Error()), nil
	}
	return read, err
}

func rejected(line session.ImportLine, detail string) session.ImportLine {
	return session.ImportLine{Line: line.Line, Outcome: session.LineRejected, Detail: detail}
}

// unknownLine says why a line is none of an archive.
func unknownLine(read session.ImportLine, line archive.Line) session.ImportLine {
	err := rawjson.Check(line.Text, rawjson.Limits{})
	switch {
	case line.Text == nil:
		return rejected(read, "the line has "+strconv.FormatInt(line.Bytes, 10)+" bytes: "+strconv.Itoa(archive.MaxLineBytes)+" are the most")
	case len(bytes.TrimSpace(line.Text)) == 0:
		read.Outcome, read.Detail = session.LineSkipped, "the line is empty"
		return read
	case err != nil:
		return rejected(read, "the line is no JSON: "+err.Error())
	}
	return rejected(read, "a line is an object with one member, which is an object: export, tenant, session, message, end or manifest")
}

func archiveVersion(d *request.Document) {
	for _, value := range d.Members("/export", rawjson.Value(d.Data), []string{"version"}) {
		d.Integer("/export/version", value, 1, archive.Version)
	}
}

// tenantPolicy gives the tenant the policy of the archive if it has never had one of its own: a file does not change how
// sessions are compacted that are there already.
func (f *feed) tenantPolicy(d *request.Document) (session.LineOutcome, string, error) {
	var layer []byte
	for _, value := range d.Members("/tenant", rawjson.Value(d.Data), []string{"policy"}) {
		layer = bytes.Clone(value.Of(d.Data))
	}
	if err := d.Err(); err != nil || layer == nil {
		return session.LineSkipped, "", err
	}
	current, err := f.s.Store.TenantPolicy(f.req.Ctx, f.req.Tenant)
	switch {
	case err != nil:
		return "", "", err
	case sameJSON(current.Patch, layer):
		return session.LineExists, "", nil
	case current.Version.Tenant > 1:
		return session.LineSkipped, "the tenant has a policy of its own and keeps it: PUT /v1/policy sets this one", nil
	}
	f.below = nil
	_, _, err = f.s.Store.ChangeTenantPolicy(f.req.Ctx, f.req.Tenant, session.TenantPolicy{
		Edit: func(_, _ json.RawMessage) (session.Policy, error) {
			p, _, err := policy.ResolveStored(layer, nil, "/policy")
			return p, err
		},
		Rebase: rebased, Expected: &current.Version.Tenant, ChangedBy: f.req.KeyDigest,
	})
	return session.LineCreated, "", err
}

func rebased(tenant, own json.RawMessage) (session.Policy, error) {
	p, _, err := policy.ResolveStored(tenant, own, "")
	return p, err
}

func sameJSON(a, b []byte) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, b) == nil && bytes.Equal(left.Bytes(), right.Bytes())
}

// archivedSession is what an archive says of a session besides its settings.
var archivedSession = append([]string{"window_source", "usage", "created_at"}, newSession...)

func (f *feed) session(d *request.Document) (*session.ImportedSession, error) {
	found, err := decodeSettings(d.Data, archivedSession, f.s.Models, f.layersBelow)
	if err != nil {
		return nil, err
	}
	if found.id == "" {
		d.Wrong("/id", request.InvalidRequest, "id is missing: the id of the session")
	}
	made := &session.ImportedSession{ID: found.id, Change: found.Change}
	made.Change.ChangedBy = f.req.KeyDigest
	for name, value := range d.Members("", rawjson.Value(d.Data), archivedSession) {
		switch name {
		case "window_source":
			text, _ := d.Text("/window_source", value, session.MaxIDBytes)
			made.Change.WindowSource = session.WindowSource(text)
		case "usage":
			made.Tokens = archivedUsage(d, value)
		case "created_at":
			made.CreatedAt = d.Time("/created_at", value)
		}
	}
	switch made.Change.WindowSource {
	case "", session.WindowOfRequest, session.WindowOfModel, session.WindowOfDefault:
	default:
		d.Wrong("/window_source", request.InvalidRequest, "%q is unknown", request.Shorten(string(made.Change.WindowSource)))
	}
	return made, nil
}

// layersBelow is the tenant's default, read once for all sessions of the body: the store puts their layers on what it is
// then.
func (f *feed) layersBelow() (session.PolicyLayers, error) {
	if f.below == nil {
		layers, err := f.s.tenantLayers(f.req, session.Address{})
		if err != nil {
			return layers, err
		}
		f.below = &layers
	}
	return *f.below, nil
}

func archivedUsage(d *request.Document, value rawjson.Span) *session.TokenHistory {
	usage := &session.TokenHistory{}
	decoder := json.NewDecoder(bytes.NewReader(value.Of(d.Data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(usage); err != nil {
		d.Wrong("/usage", request.InvalidRequest, "the usage cannot be read: %s", err)
	} else if usage.Calibration < session.MinCalibration || usage.Calibration > session.MaxCalibration {
		d.Wrong("/usage/calibration", request.InvalidRequest, "%g is out of range: %g to %g are possible", usage.Calibration, session.MinCalibration, session.MaxCalibration)
	}
	return usage
}

var archivedMessage = []string{"session", "seq", "format", "client_id", "created_at", "removed_at", "removed_seq", "body"}

// archivedMessage reads a message that stands on line n.
func readArchived(d *request.Document, n int64) *session.ImportedMessage {
	m := &session.ImportedMessage{}
	var body, client rawjson.Span
	for name, value := range d.Members("", rawjson.Value(d.Data), archivedMessage) {
		switch name {
		case "session":
			m.Session, _ = d.Text("/session", value, session.MaxIDBytes)
		case "seq":
			m.Seq = d.Integer("/seq", value, 1, session.MaxSessionMessages)
		case "format":
			m.Format = d.Format(value)
		case "client_id":
			client = value
		case "created_at":
			m.CreatedAt = d.Time("/created_at", value)
		case "removed_at":
			m.RemovedAt = d.Time("/removed_at", value)
		case "removed_seq":
			m.RemovedSeq = d.Integer("/removed_seq", value, 1, session.MaxSessionMessages)
		case "body":
			body = value
		}
	}
	checkArchived(d, m, body)
	if len(d.Problems) == 0 {
		inspectArchived(d, m, body)
		nameArchived(d, m, client, n)
	}
	return m
}

// checkArchived says what a message lacks.
func checkArchived(d *request.Document, m *session.ImportedMessage, body rawjson.Span) {
	if problem := session.CheckID(m.Session); problem != "" && !d.Has("/session") {
		d.Wrong("/session", request.InvalidRequest, "the session's id %s", problem)
	}
	if m.Format == "" && !d.Has("/format") {
		d.Wrong("/format", request.InvalidRequest, "format is missing: say %s", request.Formats())
	}
	if body == (rawjson.Span{}) {
		d.Wrong("/body", request.InvalidRequest, "body is missing: the message, or a string that holds it")
	}
	if (m.RemovedAt == nil) != (m.RemovedSeq == 0) || m.RemovedSeq > 0 && m.RemovedSeq <= m.Seq {
		d.Wrong("/removed_seq", request.InvalidRequest, "removed_at and removed_seq go together, and removed_seq is larger than seq")
	}
}

// inspect reads the message's body.
func inspectArchived(d *request.Document, m *session.ImportedMessage, at rawjson.Span) {
	body := at.Of(d.Data)
	if body[0] == '"' {
		text, whole := rawjson.Unquote(nil, body)
		if !whole {
			d.Wrong("/body", request.InvalidRequest, "the string holds half of a surrogate pair")
			return
		}
		body = text
	}
	var err error
	if m.NewMessage, err = newMessage(m.Format, body); err != nil {
		d.Add("/body", err)
	}
}

// newMessage reads what a message's body says.
func newMessage(format session.Format, body []byte) (m session.NewMessage, err error) {
	if len(body) > session.MaxMessageBytes {
		return m, session.Invalid("", "message_too_large", "the message has %d bytes: %d are the most", len(body), session.MaxMessageBytes)
	}
	limits := rawjson.Limits{Depth: session.MaxJSONDepth, Nodes: session.MaxJSONNodes, NumberBytes: session.MaxNumberBytes}
	if err := session.CheckJSON("", body, limits); err != nil {
		return m, err
	}
	found, err := wire.Inspect(format, body)
	if err != nil {
		return m, err
	}
	m.Body = body
	takeDown(&m, &found)
	return m, nil
}

// nameArchived gives a message its client id. One that has neither that nor a place is named by its line and its bytes,
// so that importing it twice stores it once.
func nameArchived(d *request.Document, m *session.ImportedMessage, client rawjson.Span, n int64) {
	switch {
	case client != (rawjson.Span{}):
		id, ok := d.Text("/client_id", client, session.MaxClientIDBytes)
		if m.ClientID = id; ok && id == "" {
			d.Wrong("/client_id", request.InvalidRequest, "a client_id is not empty: leave it out for none")
		}
	case m.Seq == 0:
		sum := sha256.Sum256(m.Body)
		m.ClientID = "l" + strconv.FormatInt(n, 10) + "-" + hex.EncodeToString(sum[:8])
	}
}

func archivedEnd(d *request.Document) *session.ImportedEnd {
	end := &session.ImportedEnd{}
	if err := json.Unmarshal(d.Data, end); err != nil {
		d.Wrong("", request.InvalidRequest, "the end of the session cannot be read: %s", err)
	}
	if end.LastSeq < 0 || end.LastSeq > session.MaxSessionMessages || session.CheckID(end.Session) != "" {
		d.Wrong("/last_seq", request.InvalidRequest, "%d is out of range: 0 to %d are possible", end.LastSeq, session.MaxSessionMessages)
	}
	return end
}
