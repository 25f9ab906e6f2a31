package console

import (
	"encoding/json"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/audit"
)

// auditPage is the trail of the tenant or, for an operator, the operators' own.
type auditPage struct {
	Action, Object string // that rows are of; "" for all
	Rows           []auditRow
	Next           string
}

// auditRow is a row of a trail with what it says beside its columns.
type auditRow struct {
	audit.Entry
	More string
}

func showAudit(v *visit) error {
	q := v.r.URL.Query()
	page := auditPage{Action: q.Get("action"), Object: q.Get("object")}
	route := client.ListAudit
	if isOperator(v.in.Key) {
		route = client.OperatorListAudit
	}
	found, next, err := list(v, route, client.Query{
		"action": page.Action, "object": page.Object, "limit": 50, "order": "desc",
	})
	if err != nil {
		return err
	}
	page.Next = next
	for _, e := range found {
		page.Rows = append(page.Rows, auditRow{e, more(&e)})
	}
	return v.show("audit", "Audit trail", "audit.html", &page)
}

// more returns the detail of a row, and what was before and after, as JSON.
func more(e *audit.Entry) string {
	said := map[string]json.RawMessage{}
	for name, value := range map[string]json.RawMessage{"detail": e.Detail, "before": e.Before, "after": e.After} {
		if len(value) > 0 && string(value) != "null" {
			said[name] = value
		}
	}
	if len(said) == 0 {
		return ""
	}
	text, err := json.MarshalIndent(said, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
