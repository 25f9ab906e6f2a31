package console

import (
	"net/url"
	"strconv"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/protocol"
)

// sessionsPage is a page of the list of sessions, or of what a search for words has found.
type sessionsPage struct {
	Filter   sessionFilter
	Sessions []listedSession
	Searches bool   // there is a search
	Words    string // that were searched for
	Hits     []hit
	Next     string // the address of the next page, "" for none
}

// sessionFilter is what the form above the list has, by the names of the API's parameters.
type sessionFilter struct {
	Model, Format, Metadata, MinTokens, Order string
	OverWindow, Failing, Quarantined, Due     bool
}

// listedSession is a row of the list.
type listedSession struct {
	protocol.Session
	Bar bar
}

// hit is a passage that has the words.
type hit struct {
	Session   string    `json:"session"`
	Seq       int64     `json:"seq"`
	Ref       string    `json:"ref"`
	Role      string    `json:"role"`
	Tool      string    `json:"tool"`
	Snippet   string    `json:"snippet"`
	CreatedAt time.Time `json:"created_at"`
}

const searchRoute client.ListRoute[hit] = "search"

// showSessions shows the sessions of a filter, or those that have some words. An id leads to its session.
func showSessions(v *visit) error {
	q := v.r.URL.Query()
	if id := q.Get("id"); id != "" {
		return v.redirect(pathOf("sessions", id))
	}
	page := sessionsPage{Filter: filterOf(q), Searches: v.site.has("search"), Words: q.Get("q")}
	if page.Words != "" {
		return v.search(&page)
	}
	wanted := page.Filter.conditions()
	wanted["order"], wanted["limit"] = page.Filter.Order, 25
	found, next, err := list(v, client.ListSessions, wanted)
	if err != nil {
		return err
	}
	page.Next = next
	own, err := client.ReadTenantPolicy.Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	tenant := effective(own.Value.Effective)
	for _, s := range found {
		in, err := v.policyOf(&s, tenant)
		if err != nil {
			return err
		}
		page.Sessions = append(page.Sessions, listedSession{s, barOf(&s, in)})
	}
	return v.show("sessions", "Sessions", "sessions.html", &page)
}

// policyOf returns the policy of a session in a list, which has none of its own in most.
func (v *visit) policyOf(s *protocol.Session, tenant *policy.Policy) (*policy.Policy, error) {
	if s.PolicyVersion.Session == 0 {
		return tenant, nil
	}
	whole, err := client.ReadSession.With(v.ctx, v.api, withPolicy, s.ID)
	if is(err, "not_found") {
		return nil, nil // erased just now
	}
	if err != nil {
		return nil, err
	}
	return effective(whole.Value.Policy), nil
}

func (v *visit) search(page *sessionsPage) (err error) {
	if page.Hits, page.Next, err = list(v, searchRoute, client.Query{"q": page.Words}); err != nil {
		return err
	}
	return v.show("sessions", "Sessions", "sessions.html", page)
}

func filterOf(q url.Values) sessionFilter {
	return sessionFilter{
		Model: q.Get("model"), Format: q.Get("format"), Metadata: q.Get("metadata"), MinTokens: q.Get("min_tokens"),
		Order: q.Get("order"), OverWindow: q.Has("over_window"), Failing: q.Has("failing"),
		Quarantined: q.Has("quarantined"), Due: q.Has("due"),
	}
}

// conditions says which sessions are wanted.
func (f *sessionFilter) conditions() client.Query {
	q := client.Query{"model": f.Model, "format": f.Format, "metadata": f.Metadata, "min_tokens": f.MinTokens}
	for name, on := range map[string]bool{
		"over_window": f.OverWindow, "failing": f.Failing, "quarantined": f.Quarantined, "due": f.Due,
	} {
		if on {
			q[name] = strconv.FormatBool(on)
		}
	}
	return q
}
