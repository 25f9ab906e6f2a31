package console

import (
	"cmp"
	"encoding/json"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// tenantsPage lists the tenants, for operators.
type tenantsPage struct {
	Make    form
	Tenants []session.TenantDetails
	Next    string
}

func showTenants(v *visit) (err error) {
	page := tenantsPage{Make: form{
		To: pathOf("tenants"), Word: "Make a tenant", Does: "Its first key, of an admin, is shown once.",
		Inputs: []input{{Name: "name", Label: "Name", Needed: true}},
	}}
	if page.Tenants, page.Next, err = list(v, client.ListTenants, client.Query{"limit": 50}); err != nil {
		return err
	}
	return v.show("tenants", "Tenants", "tenants.html", &page)
}

// tenantPage is one tenant, for operators.
type tenantPage struct {
	Tenant   session.TenantDetails
	Quotas   string // its own, as JSON
	Keys     []session.APIKey
	NextKeys string
	Holds    []session.ListedHold
	Forms    []form
}

func showTenant(v *visit) error {
	id := v.r.PathValue("tenant")
	read, err := client.ReadTenant.Call(v.ctx, v.api, id)
	if err != nil {
		return err
	}
	page := tenantPage{Tenant: read.Value, Quotas: indented(read.Value.Quotas)}
	if page.Keys, page.NextKeys, err = list(v, client.OperatorListKeys, nil, id); err != nil {
		return err
	}
	holds, err := client.OperatorListHolds.All(v.ctx, v.api, 20, id)
	if err != nil {
		return err
	}
	var held *session.ListedHold // all of the tenant
	for i := range holds {
		page.Holds = append(page.Holds, holds[i].Value)
		if holds[i].Value.Session == nil {
			held = &holds[i].Value
		}
	}
	page.Forms = tenantForms(&page.Tenant, held)
	return v.show("tenants", page.Tenant.Name, "tenant.html", &page)
}

// changeTenant suspends a tenant, lets it in again, or sets its quotas.
func changeTenant(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	change := map[string]any{}
	if form := v.r.PostForm; form.Has("suspended") {
		change["suspended"] = form.Get("suspended")
		if form.Get("suspended") == "" {
			change["suspended"] = nil
		}
	}
	if quotas := v.r.PostForm.Get("quotas"); quotas != "" {
		change["quotas"] = quotas // which the API refuses if it is not JSON
		if json.Valid([]byte(quotas)) {
			change["quotas"] = json.RawMessage(quotas)
		}
	}
	id := v.r.PathValue("tenant")
	_, err := client.ChangeTenant.With(v.ctx, v.api, client.Options{Body: change}, id)
	return v.then(err, "tenants", id)
}

func revokeTenantKey(v *visit) error {
	id := v.r.PathValue("tenant")
	return v.then(client.OperatorRevokeKey.Call(v.ctx, v.api, id, v.r.PathValue("key")), "tenants", id)
}

// fleetPage lists the sessions of all tenants, those first that have the most of something.
type fleetPage struct {
	Order    string
	Orders   []session.SessionOrder
	Sessions []fleetSession
	Next     string
}

// fleetSession is a row of the fleet.
type fleetSession struct {
	session.SessionOfTenant
	Bar bar
}

func (p *fleetPage) add(s session.SessionOfTenant) {
	p.Sessions = append(p.Sessions, fleetSession{s, bar{View: s.ContextTokens, Window: int64(s.WindowTokens)}})
}

func showFleet(v *visit) error {
	page := fleetPage{Orders: session.SessionOrders()}
	page.Order = cmp.Or(v.r.URL.Query().Get("order"), string(page.Orders[0]))
	found, next, err := list(v, client.ListAllSessions, client.Query{"order": page.Order, "limit": 50})
	if err != nil {
		return err
	}
	page.Next = next
	for _, s := range found {
		page.add(s)
	}
	return v.show("fleet", "Sessions of all tenants", "fleet.html", &page)
}

// worst is the list of the ten sessions of all tenants that have the most of something.
type worst struct {
	Order session.SessionOrder
	Says  string
	fleetPage
}

// allPage is the overview of all tenants.
type allPage struct {
	State session.StateOfAll
	Worst []worst
	Used  overviewPage
}

// showAll shows an operator what needs somebody, and what all tenants have used.
func showAll(v *visit) error {
	state, err := client.ReadStateOfAll.Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	used, err := client.Route[protocol.Usage]("GET admin/usage").Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	page := allPage{State: state.Value, Used: overviewOf(used.Value)}
	if page.Worst, err = v.worst(); err != nil {
		return err
	}
	return v.show("overview", "Overview", "worst.html", &page)
}

// worst returns the lists of the sessions that have the most of something.
func (v *visit) worst() ([]worst, error) {
	page := []worst{
		{Order: session.ByQuarantined, Says: "In quarantine, the longest time first"},
		{Order: session.ByFailing, Says: "Compaction fails, the longest time first"},
		{Order: session.ByOverWindow, Says: "View over its window, by tokens"},
		{Order: session.ByTokens, Says: "The most tokens"},
	}
	const ten = 10
	for i := range page {
		q := client.Query{"order": page[i].Order}
		found, err := client.ListAllSessions.Find(v.ctx, v.api, q, ten)
		if err != nil {
			return nil, err
		}
		for k := range found {
			page[i].add(found[k].Value)
		}
	}
	return page, nil
}
