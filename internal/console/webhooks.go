package console

import (
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
)

// webhook is the API's answer about a webhook, as far as pages show it.
type webhook struct {
	ID             uuid.UUID  `json:"id"`
	Name           string     `json:"name"`
	URL            string     `json:"url"`
	Types          []string   `json:"types"`
	DisabledAt     *time.Time `json:"disabled_at"`
	DisabledReason *string    `json:"disabled_reason"`
	Failures       int64      `json:"failures"`
	LastError      *string    `json:"last_error"`
	LastDelivered  *time.Time `json:"last_delivered_at"`
	Delivered      int64      `json:"delivered"`
	Pending        int64      `json:"pending"`
	Dropped        int64      `json:"dropped"`
	Secret         string     `json:"secret"` // of one that was just made
}

func showWebhooks(v *visit) error { return v.webhooks("") }

func (v *visit) webhooks(secret string) error {
	t := table{Title: "Webhooks", Secret: secret, Empty: "Events are sent nowhere.",
		Says: "Events are sent, signed, to these addresses; one that takes none is tried again, then disabled.",
		Head: heads("Address", "Name", "Events", "#Delivered", "#Waiting", "#Dropped", "#Failures", "Last delivered",
			"Last error", "State", ""),
		Forms: []form{{To: pathOf("webhooks"), Word: "Send events", Does: "The secret that signs them is shown once.",
			Inputs: []input{{Name: "url", Label: "Address", Example: "https://hooks.example/varve", Needed: true},
				{Name: "name", Label: "Name"}}}}}
	err := fill(v, &t, client.ListRoute[webhook]("webhooks"), webhookRow)
	if err != nil {
		return err
	}
	return v.admin("webhooks", &t)
}

func webhookRow(w *webhook) []cell {
	at := func(do string) string { return pathOf("webhooks", w.ID, do) }
	forms := []form{{To: at("test"), Word: "Test", Does: "Sends it an event of the type webhook.test."}}
	state, events := text("enabled"), text("all")
	failed := optional(w.LastError)
	failed.Bad = true
	if len(w.Types) > 0 {
		events = text(w.Types)
	}
	if w.DisabledAt != nil {
		state = cell{Text: "disabled: " + optional(w.DisabledReason).Text, Bad: true}
		forms = []form{{To: at("enable"), Word: "Enable", Does: "Events are sent again from where they ended."}}
	}
	forms = append(forms, form{To: at("delete"), Word: "Delete", Danger: true,
		Does: "Events that wait for it are not sent any more."})
	return []cell{linked(w.URL, at("deliveries")), text(w.Name), events, number(w.Delivered), number(w.Pending),
		number(w.Dropped), number(w.Failures), when(w.LastDelivered), failed, state, doing(forms...)}
}

func makeWebhook(v *visit) error {
	wanted := map[string]string{"url": v.r.PostFormValue("url"), "name": v.r.PostFormValue("name")}
	made, err := client.Route[webhook]("POST webhooks").With(v.ctx, v.api, client.Options{Body: wanted})
	if err != nil {
		return err
	}
	return v.webhooks(made.Value.Secret)
}

// changeWebhook tests, enables or deletes a webhook.
func changeWebhook(v *visit) error {
	routes := map[string]client.Effect{
		"test": "POST webhooks/{webhook}/test", "enable": "POST webhooks/{webhook}/enable",
		"delete": "DELETE webhooks/{webhook}",
	}
	route, known := routes[v.r.PathValue("do")]
	if !known {
		return showNothing(v)
	}
	return v.then(route.Call(v.ctx, v.api, v.r.PathValue("webhook")), "webhooks")
}

// delivery is an event that a webhook has not got yet.
type delivery struct {
	N         int64     `json:"n"`
	Type      string    `json:"type"`
	At        time.Time `json:"timestamp"`
	Session   *string   `json:"session"`
	Attempts  int64     `json:"attempts"`
	NextTryAt time.Time `json:"next_try_at"`
	Error     *string   `json:"error"`
}

// showDeliveries shows what a webhook has not got yet, and why.
func showDeliveries(v *visit) error {
	at := v.r.PathValue("webhook")
	read, err := client.Route[webhook]("GET webhooks/{webhook}").Call(v.ctx, v.api, at)
	if err != nil {
		return err
	}
	w := &read.Value
	t := table{Title: "Deliveries",
		Says: "Events that wait for " + w.URL + ", in their order. Of each session one is tried at a time. What was " +
			"delivered is counted, and not kept.",
		Facts: []fact{{"Id", idOf(w.ID)}, {"Delivered", number(w.Delivered)}, {"Waiting", number(w.Pending)},
			{"Dropped after 7 days", number(w.Dropped)}},
		Head:  heads("#Event", "Type", "Session", "Happened", "#Failed attempts", "Next attempt", "Error"),
		Empty: "Nothing waits."}
	err = fill(v, &t, client.ListRoute[delivery]("webhooks/{webhook}/deliveries"), func(d *delivery) []cell {
		of, failed := cell{}, optional(d.Error)
		if d.Session != nil {
			of = linkedID(*d.Session, pathOf("sessions", *d.Session))
		}
		failed.Bad = true
		return []cell{number(d.N), text(d.Type), of, when(&d.At), number(d.Attempts), when(&d.NextTryAt), failed}
	}, at)
	if err != nil {
		return err
	}
	return v.admin("webhooks", &t)
}
