package api

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/usage"
)

// The time that a report of usage is about.
const (
	usageTime    = 30 * 24 * time.Hour
	maxUsageTime = 366 * 24 * time.Hour
)

var csvType = []string{"text/csv; charset=utf-8"}

// readUsage handles GET /v1/usage: what the tenant has used, day by day; for an operator, what all have.
func (s *Server) readUsage(req *request.Request) error {
	q := req.Query()
	to := q.Day("to", time.Now())
	from := q.Day("from", to.Add(-usageTime))
	inCSV := q.Choice("format", "json", "csv") == "csv"
	if len(q.Problems) == 0 && (from.After(to) || to.Sub(from) > maxUsageTime) {
		q.Wrong("from", request.InvalidRequest, "must not be after to, and at most %d days before it",
			maxUsageTime/(24*time.Hour))
	}
	if err := req.Err(); err != nil {
		return err
	}
	days, err := usedBy(req, from, to)
	if err != nil {
		return err
	}
	if inCSV {
		return answerUsageCSV(req, days)
	}
	answer := protocol.Usage{From: dayOf(from), To: dayOf(to), Data: make([]protocol.DayOfUse, len(days))}
	for i, d := range days {
		answer.Total.Add(d.Use)
		answer.Data[i] = protocol.DayOfUse{Day: dayOf(d.Day), Use: d.Use}
	}
	return req.JSON(http.StatusOK, answer)
}

// usedBy returns what the tenant has used or, for an operator, what all have together.
func usedBy(req *request.Request, from, to time.Time) ([]session.DayOfUse, error) {
	if req.Caller.Kind == session.OperatorCaller {
		return usage.ByDayOfAll(req.Ctx, req.Store, from, to)
	}
	return usage.ByDay(req.Ctx, req.Store, req.Tenant, from, to)
}

// readStateOfAll handles GET /v1/admin/usage/state.
func (s *Server) readStateOfAll(req *request.Request) error {
	found, err := usage.StateOfAll(req.Ctx, req.Store)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// readState handles GET /v1/usage/state.
func (s *Server) readState(req *request.Request) error {
	found, err := usage.State(req.Ctx, req.Store, req.Tenant)
	return request.AnswerFound(req, found, err, request.AsIs)
}

// readRunsByHour handles GET /v1/usage/runs.
func (s *Server) readRunsByHour(req *request.Request) error {
	hours := req.Query().Integer("hours", 1, session.MaxRunHours, 24)
	if err := req.Err(); err != nil {
		return err
	}
	since := time.Now().Truncate(time.Hour).Add(time.Duration(1-hours) * time.Hour)
	found, err := usage.RunsByHour(req.Ctx, req.Store, req.Tenant, since)
	return request.AnswerFound(req, protocol.RunsByHour{Data: found}, err, request.AsIs)
}

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// usageColumns are the columns of the report as CSV, and what they have of a day.
var usageColumns = []struct {
	name string
	of   func(*session.Use) int64
}{
	{"messages", func(u *session.Use) int64 { return u.Messages }},
	{"bytes", func(u *session.Use) int64 { return u.Bytes }},
	{"tokens", func(u *session.Use) int64 { return u.Tokens }},
	{"views", func(u *session.Use) int64 { return u.Views }},
	{"tokens_served", func(u *session.Use) int64 { return u.TokensServed }},
	{"tokens_saved", func(u *session.Use) int64 { return u.TokensSaved }},
	{"read_backs", func(u *session.Use) int64 { return u.ReadBacks }},
	{"compactions", func(u *session.Use) int64 { return u.Compactions }},
	{"model_calls", func(u *session.Use) int64 { return u.ModelCalls }},
	{"model_input_tokens", func(u *session.Use) int64 { return u.ModelInputTokens }},
	{"model_output_tokens", func(u *session.Use) int64 { return u.ModelOutputTokens }},
	{"model_cost_micros", func(u *session.Use) int64 { return u.ModelCostMicros }},
}

// answerUsageCSV answers with a line for each day, after one with the names of the columns.
func answerUsageCSV(req *request.Request, days []session.DayOfUse) error {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	line := []string{"day"}
	for _, c := range usageColumns {
		line = append(line, c.name)
	}
	_ = w.Write(line) // a buffer takes everything
	for i := range days {
		line = append(line[:0], dayOf(days[i].Day))
		for _, c := range usageColumns {
			line = append(line, strconv.FormatInt(c.of(&days[i].Use), 10))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return req.Bytes(http.StatusOK, csvType, text.Bytes())
}

// listUsage handles GET /v1/usage/sessions.
func (s *Server) listUsage(req *request.Request) error {
	find := func(l *request.List) ([]session.SessionUse, error) {
		return usage.BySession(req.Ctx, req.Store, req.Tenant, l.Page())
	}
	answer := func(u session.SessionUse) protocol.SessionUse {
		return protocol.SessionUse{Session: u.Session, Use: u.Use}
	}
	place := func(last session.SessionUse) request.Place { return request.PlaceIn(last.CreatedAt, last.Key) }
	return request.AnswerList(req, "usage", find, answer, place)
}
