package console

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func showOperators(v *visit) error { return v.operatorKeys("") }

func (v *visit) operatorKeys(secret string) error {
	t := table{Title: "Keys of operators", Secret: secret, Empty: "There are none.",
		Head: heads("Name", "Ends in", "Made", "Last used", "Expires", ""),
		Forms: []form{{To: pathOf("operators"), Word: "Make a key", Does: "An operator administers all tenants, and " +
			"reads no message.", Inputs: []input{{Name: "name", Label: "Name", Needed: true}}}}}
	err := fill(v, &t, client.ListOperatorKeys, func(k *session.OperatorKey) []cell {
		do := doing(form{To: pathOf("operators", k.ID, "revoke"), Word: "Revoke", Danger: true,
			Does: "It is refused within seconds. It cannot be undone."})
		if k.RevokedAt != nil {
			do = text("revoked")
		}
		return []cell{text(k.Name), text("…" + k.Last4), when(&k.CreatedAt), when(k.LastUsedAt),
			when(k.ExpiresAt), do}
	})
	if err != nil {
		return err
	}
	return v.admin("operators", &t)
}

func makeOperatorKey(v *visit) error {
	wanted := map[string]string{"name": v.r.PostFormValue("name")}
	made, err := client.CreateOperatorKey.With(v.ctx, v.api, client.Options{Body: wanted})
	if err != nil {
		return err
	}
	return v.operatorKeys(made.Value.Text)
}

func revokeOperatorKey(v *visit) error {
	return v.then(client.RevokeOperatorKey.Call(v.ctx, v.api, v.r.PathValue("key")), "operators")
}

// tenantForms returns what an operator can do with a tenant beside what its page has.
func tenantForms(t *session.TenantDetails, held *session.ListedHold) []form {
	at := func(do string) string { return pathOf("tenants", t.ID, do) }
	hold := form{To: at("hold"), Word: "Place a hold", Does: "A legal hold keeps all of the tenant from being erased.",
		Inputs: []input{{Name: "reason", Label: "Reason", Needed: true}}}
	if held != nil {
		hold = form{To: at("hold"), Word: "Lift the hold", Danger: true, Does: "Held: " + held.Reason,
			Inputs: []input{{Name: "lift", Value: "1"}}}
	}
	return []form{makeKeyForm(at("keys")), hold, {
		To: at("delete"), Word: "Delete the tenant", Danger: true,
		Does: fmt.Sprintf("Deletes the tenant for ever with its %d sessions, its keys and its policy. Nothing can be "+
			"brought back; a receipt says what was there.", t.Usage.Sessions),
		Inputs: []input{sure("the tenant's name")},
	}}
}

func makeTenant(v *visit) error {
	wanted := protocol.TenantRequest{Name: v.r.PostFormValue("name"), Key: &protocol.KeyRequest{Role: session.Admin}}
	made, err := client.CreateTenant.With(v.ctx, v.api, client.Options{Body: wanted})
	if err != nil {
		return err
	}
	return v.madeKey(made.Value.Name, made.Value.ID, made.Value.Key)
}

func makeTenantKey(v *visit) error {
	id, err := uuid.Parse(v.r.PathValue("tenant"))
	if err != nil {
		return showNothing(v)
	}
	wanted, ok := v.wantedKey()
	if !ok {
		return v.notSure(daysOrNever)
	}
	made, err := client.OperatorCreateKey.With(v.ctx, v.api, client.Options{Body: wanted}, id)
	if err != nil {
		return err
	}
	return v.madeKey("A key of the tenant", id, &made.Value)
}

// madeKey shows a key of a tenant that was just made.
func (v *visit) madeKey(title string, tenant uuid.UUID, key *protocol.NewKey) error {
	return v.table("tenants", &table{
		Title: title, Secret: key.Text, Tabs: []link{{pathOf("tenants", tenant), "The tenant", false}},
	})
}

func holdTenant(v *visit) error {
	id, reason := v.r.PathValue("tenant"), v.r.PostFormValue("reason")
	if v.r.PostFormValue("lift") != "" {
		return v.then(client.OperatorDeleteHold.Call(v.ctx, v.api, id), "tenants", id)
	}
	o := client.Options{Body: protocol.HoldRequest{Reason: reason}}
	_, err := client.OperatorPutHold.With(v.ctx, v.api, o, id)
	return v.then(err, "tenants", id)
}

func deleteTenant(v *visit) error {
	id := v.r.PathValue("tenant")
	read, err := client.ReadTenant.Call(v.ctx, v.api, id)
	if err != nil {
		return err
	}
	if !v.isSure(read.Value.Name) {
		return v.notSure("the tenant's name")
	}
	o := client.Options{Query: client.Query{"confirm": id}} // people write the name, the API wants the id
	begun, err := client.DeleteTenant.With(v.ctx, v.api, o, id)
	return v.then(err, "erasures", begun.Value.ID)
}

// campaign is a recompaction of many tenants.
type campaign struct {
	ID            uuid.UUID       `json:"id"`
	Tenants       int64           `json:"tenants"`
	Filter        json.RawMessage `json:"filter"`
	Policy        json.RawMessage `json:"policy"`
	CreatedAt     time.Time       `json:"created_at"`
	States        map[string]int  `json:"states"`
	Progress      progress        `json:"progress"`
	TokensBefore  int64           `json:"tokens_before"`
	TokensAfter   int64           `json:"tokens_after"`
	Recompactions []struct {
		Tenant      uuid.UUID  `json:"tenant"`
		State       string     `json:"state"`
		Progress    progress   `json:"progress"`
		NextStartAt *time.Time `json:"next_start_at"`
	} `json:"recompactions"`
}

const (
	listCampaigns client.ListRoute[campaign] = "admin/tenants/recompactions"
	readCampaign  client.Route[campaign]     = "GET admin/tenants/recompactions/{group}"
)

func showCampaigns(v *visit) error {
	t := table{Title: "Recompactions of many tenants", Empty: "There was none yet.",
		Head: heads("Begun", "Of", "#Tenants"),
		Tabs: []link{{pathOf("campaigns", "new"), "New recompaction", false}}}
	err := fill(v, &t, listCampaigns, func(c *campaign) []cell {
		return []cell{since(c.CreatedAt, pathOf("campaigns", c.ID)), text(filterText(c.Filter)),
			number(c.Tenants)}
	})
	if err != nil {
		return err
	}
	return v.table("campaigns", &t)
}

func showCampaign(v *visit) error {
	read, err := readCampaign.Call(v.ctx, v.api, v.r.PathValue("group"))
	if err != nil {
		return err
	}
	c := &read.Value
	t := table{Title: "Recompaction of many tenants", Head: heads("Tenant", "State", "#Done", "#Of", "#Changed",
		"#Failed", "Next session")}
	t.Facts = []fact{{"Id", idOf(c.ID)}, {"Of", text(filterText(c.Filter))}, {"Begun", when(&c.CreatedAt)},
		{"Sessions done", text(fmt.Sprintf("%d of %d", c.Progress.Done, c.Progress.Total))},
		{"Changed", number(c.Progress.Changed)}, {"Failed", number(c.Progress.Failed)},
		{"Tokens of the views", text(fmt.Sprintf("%d → %d", c.TokensBefore, c.TokensAfter))}}
	for _, of := range c.actions() {
		f := form{To: pathOf("campaigns", c.ID, of.Do), Word: of.Word, Does: of.Does, Danger: of.Danger}
		t.Forms = append(t.Forms, f)
	}
	for i := range c.Recompactions {
		r := &c.Recompactions[i]
		t.Rows = append(t.Rows, []cell{linkedID(r.Tenant, pathOf("tenants", r.Tenant)), text(r.State),
			number(r.Progress.Done), number(r.Progress.Total), number(r.Progress.Changed), number(r.Progress.Failed),
			when(r.NextStartAt)})
	}
	return v.table("campaigns", &t)
}

// actions returns what can be done with it now: what can be done with some of its recompactions.
func (c *campaign) actions() (list []control) {
	seen := map[string]bool{}
	for state := range c.States {
		one := recompaction{State: state, Progress: c.Progress}
		for _, a := range one.Actions() {
			if !seen[a.Do] {
				seen[a.Do] = true
				list = append(list, a)
			}
		}
	}
	return list
}

func controlCampaign(v *visit) error {
	id, do := v.r.PathValue("group"), v.r.PathValue("do")
	if !isControl(do) {
		return showNothing(v)
	}
	_, err := client.Route[campaign]("POST admin/tenants/recompactions/{group}/"+do).Call(v.ctx, v.api, id)
	return v.then(err, "campaigns", id)
}
