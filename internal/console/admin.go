package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// The pages of a tenant's administration, and of the operators' own.
var adminTabs = []link{
	{"/console/usage", "Use by session", false}, {"/console/models", "Models and limits", false},
	{"/console/archives", "Archives", false}, {"/console/holds", "Holds", false},
	{"/console/erasures", "Erasures", false}, {"/console/keys", "Keys", false},
	{"/console/webhooks", "Webhooks", false},
}

var operatorTabs = []link{{"/console/operators", "Keys of operators", false}, {"/console/erasures", "Erasures", false}}

// admin shows a page of the administration.
func (v *visit) admin(at string, t *table) error {
	tabs := adminTabs
	if isOperator(v.in.Key) {
		tabs = operatorTabs
	}
	for _, tab := range tabs {
		if !v.site.has(strings.TrimPrefix(tab.To, root+"/")) {
			continue
		}
		tab.Here = tab.To == root+"/"+at
		t.Tabs = append(t.Tabs, tab)
	}
	return v.table("admin", t)
}

func showUse(v *visit) error {
	t := table{Title: "Use by session", Says: "Since each session was made, as the ledger has counted it.",
		Empty: "Nothing was used yet.", Head: heads("Session", "#Messages", "#Tokens", "#Views", "#Tokens served",
			"#Tokens saved", "#Read back", "#Compactions")}
	const route client.ListRoute[protocol.SessionUse] = "usage/sessions"
	err := fill(v, &t, route, func(u *protocol.SessionUse) []cell {
		return []cell{linkedID(u.Session, pathOf("sessions", u.Session)), number(u.Messages), number(u.Tokens),
			number(u.Views), number(u.TokensServed), number(u.TokensSaved), number(u.ReadBacks), number(u.Compactions)}
	})
	if err != nil {
		return err
	}
	t.Forms = []form{{To: pathOf("export"), Word: "Export all", Does: "Writes all sessions of the tenant into a " +
		"file, which varve import reads. The audit trail has a row of it."}}
	return v.admin("usage", &t)
}

// exportTenant hands an archive over: of the sessions that a filter finds, without one of all.
func exportTenant(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	f, q := filterOf(v.r.PostForm), url.Values{}
	for name, value := range f.conditions() {
		if text := fmt.Sprint(value); text != "" {
			q.Set(name, text)
		}
	}
	return v.pass("/v1/export?"+q.Encode(), "sessions.ndjson")
}

func showModels(v *visit) error {
	t := table{Title: "Models and limits", Says: "The language models that may write summaries, and what bounds the " +
		"tenant's requests.", Empty: "No model writes summaries here.", Head: heads("Model", "Provider", "Name there",
		"#Window", "#Longest answer", "#Price of input", "#Of output")}
	all, err := client.Route[protocol.List[protocol.SummaryModel]]("GET "+client.ListSummaryModels).Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	for _, m := range all.Value.Data {
		price := func(of float64) cell { return cell{Text: fmt.Sprintf("%.2f", of), Num: true} }
		t.Rows = append(t.Rows, []cell{text(m.ID), text(m.Provider), text(m.Model), number(int64(m.WindowTokens)),
			number(int64(m.MaxOutputTokens)), price(m.Price.Input), price(m.Price.Output)})
	}
	limits, err := client.Route[json.RawMessage]("GET limits").Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	t.Raw = indented(limits.Value)
	return v.admin("models", &t)
}

func showArchives(v *visit) error {
	t := table{Title: "Archives", Says: "Archived sessions are in no other list and in no search.",
		Empty: "No session is archived.",
		Head:  heads("Session", "State", "#Messages", "#Bytes", "Archived", "Error", "")}
	err := fill(v, &t, client.ListArchives, func(a *session.Archive) []cell {
		back := form{To: pathOf("sessions", a.Session, "unarchive"), Word: "Restore",
			Does: "The session comes back with every byte."}
		failed := optional(a.Error)
		failed.Bad = true
		return []cell{idOf(a.Session), text(a.State), number(a.Messages), number(a.StoredBytes), when(a.ArchivedAt),
			failed, doing(back)}
	})
	if err != nil {
		return err
	}
	return v.admin("archives", &t)
}

func unarchiveSession(v *visit) error {
	_, err := client.UnarchiveSession.Call(v.ctx, v.api, v.r.PathValue("id"))
	return v.then(err, "archives")
}

func showHolds(v *visit) error {
	t := table{Title: "Legal holds", Says: "What is held cannot be erased. A hold is placed and lifted on the " +
		"page of its session.", Empty: "Nothing is held.", Head: heads("Held", "Reason", "Since")}
	err := fill(v, &t, client.ListHolds, func(h *session.ListedHold) []cell {
		what := text("all of the tenant")
		if h.Session != nil {
			what = linkedID(*h.Session, pathOf("sessions", *h.Session, "manage"))
		}
		return []cell{what, text(h.Reason), when(&h.PlacedAt)}
	})
	if err != nil {
		return err
	}
	return v.admin("holds", &t)
}

var erasureHeads = heads("Erasure", "Of", "State", "#Sessions", "#Messages", "#Results", "#Bytes", "Ended")

func erasureRow(e *session.Erasure) []cell {
	return []cell{since(e.CreatedAt, pathOf("erasures", e.ID)), text(e.Kind),
		text(e.State), number(e.Sessions), number(e.Messages), number(e.Results), number(e.Bytes), when(e.FinishedAt)}
}

func showErasures(v *visit) error {
	t := table{Title: "Erasures", Empty: "Nothing was erased.", Head: erasureHeads}
	if isOperator(v.in.Key) {
		t.Says = "The deletions of tenants. Each ends with a receipt."
		if err := fill(v, &t, client.ListTenantErasures, erasureRow); err != nil {
			return err
		}
		return v.admin("erasures", &t)
	}
	t.Forms = []form{{
		To: pathOf("erasures"), Word: "Erase", Danger: true,
		Does: "Erases all sessions with some metadata for ever, and what is forked of them: messages, results, " +
			"checkpoints. Held ones stay. Nothing can be brought back.",
		Inputs: []input{
			{Name: "metadata", Label: "Metadata", Example: `{"user":"u1"}`, Needed: true}, sure("erase"),
		},
	}}
	if err := fill(v, &t, client.ListErasures, erasureRow); err != nil {
		return err
	}
	return v.admin("erasures", &t)
}

func eraseSubject(v *visit) error {
	if !v.isSure("erase") {
		return v.notSure("the word erase")
	}
	metadata := v.r.PostFormValue("metadata")
	if !json.Valid([]byte(metadata)) {
		return v.notSure("metadata in JSON")
	}
	wanted := protocol.ErasureRequest{Metadata: json.RawMessage(metadata)}
	begun, err := client.CreateErasure.With(v.ctx, v.api, client.Options{Body: wanted})
	return v.then(err, "erasures", begun.Value.ID)
}

func showErasure(v *visit) error {
	route := client.Route[json.RawMessage](client.ReadErasure)
	if isOperator(v.in.Key) {
		route = client.Route[json.RawMessage](client.ReadTenantErasure)
	}
	read, err := route.Call(v.ctx, v.api, v.r.PathValue("erasure"))
	if err != nil {
		return err
	}
	t := table{Title: "Erasure", Says: "What was erased so far and, at the end, the receipt.",
		Facts: []fact{{"Id", idOf(v.r.PathValue("erasure"))}}, Raw: indented(read.Value)}
	return v.admin("erasures", &t)
}

func showKeys(v *visit) error { return v.keys("") }

func (v *visit) keys(secret string) error {
	t := table{Title: "Keys", Secret: secret, Empty: "There are none.", Forms: []form{makeKeyForm(pathOf("keys"))},
		Head: heads("Name", "Ends in", "Scopes", "Made", "Last used", "Expires", "")}
	err := fill(v, &t, client.ListKeys, func(k *session.APIKey) []cell {
		do := doing(
			form{To: pathOf("keys", k.ID, "rotate"), Word: "Rotate", Does: "Makes a key in its place, with the same " +
				"scopes. The old one is taken for a day more."},
			form{To: pathOf("keys", k.ID, "revoke"), Word: "Revoke", Danger: true,
				Does: "Programs with this key are refused within seconds. It cannot be undone."})
		if k.RevokedAt != nil {
			do = text("revoked")
		}
		return []cell{text(cmp.Or(k.Name, "–")), text("…" + k.Last4), text(k.Scopes), when(&k.CreatedAt),
			when(k.LastUsedAt), when(k.ExpiresAt), do}
	})
	if err != nil {
		return err
	}
	return v.admin("keys", &t)
}

func makeKeyForm(to string) form {
	roles := []string{}
	for _, r := range session.Roles() {
		roles = append(roles, string(r))
	}
	return form{To: to, Word: "Make a key", Does: "A viewer reads; an operator also writes, compacts, changes " +
		"policies and exports; an admin may do all.",
		Inputs: []input{{Name: "name", Label: "Name"}, {Name: "role", Label: "Role", Choices: roles},
			{Name: "days", Label: "Days until it expires", Example: "never"}}}
}

// wantedKey returns the key that makeKeyForm asks for; false for one whose end is no number of days.
func (v *visit) wantedKey() (protocol.KeyRequest, bool) {
	days, ok := v.count("days")
	return protocol.KeyRequest{Name: v.r.PostFormValue("name"), Role: session.Role(v.r.PostFormValue("role")),
		TTLSeconds: days * 24 * 3600}, ok
}

const daysOrNever = "a number of days, or nothing for a key that never expires,"

func makeKey(v *visit) error {
	wanted, ok := v.wantedKey()
	if !ok {
		return v.notSure(daysOrNever)
	}
	made, err := client.CreateKey.With(v.ctx, v.api, client.Options{Body: wanted})
	if err != nil {
		return err
	}
	return v.keys(made.Value.Text)
}

func rotateKey(v *visit) error {
	o := client.Options{Body: protocol.RotateRequest{}}
	made, err := client.RotateKey.With(v.ctx, v.api, o, v.r.PathValue("key"))
	if err != nil {
		return err
	}
	return v.keys(made.Value.Text)
}

func revokeKey(v *visit) error {
	return v.then(client.RevokeKey.Call(v.ctx, v.api, v.r.PathValue("key")), "keys")
}
