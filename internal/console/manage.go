package console

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// showManage shows the tokens of a session, and what can be done with it as a whole.
func showManage(v *visit) error { return v.manage("") }

// manage shows the page, with the text of a token that was just made.
func (v *visit) manage(secret string) error {
	h, err := v.head("manage")
	if err != nil {
		return err
	}
	id := h.Session.ID
	t := table{
		Of: &h, Title: "Tokens and the session as a whole", Secret: secret, Empty: "The session has no tokens.",
		Head: heads("Token", "Ends in", "Scopes", "Made", "Expires", ""),
	}
	hold, err := client.ReadHold.Call(v.ctx, v.api, id)
	if err != nil && !is(err, "not_found") {
		return err
	}
	t.Forms = manageForms(&h.Session, hold.Value)
	err = fill(v, &t, client.ListTokens, func(of *session.Token) []cell {
		revoke := form{To: pathOf("sessions", id, "tokens", of.ID, "revoke"), Word: "Revoke",
			Does: "The agent with this token is refused at once.", Danger: true}
		do := doing(revoke)
		if of.RevokedAt != nil {
			do = text("revoked")
		}
		return []cell{text(cmp.Or(of.Name, "–")), text("…" + of.Last4), text(of.Scopes), when(&of.CreatedAt),
			when(&of.ExpiresAt), do}
	}, id)
	if err != nil {
		return err
	}
	return v.show("sessions", h.Session.ID, "table.html", &t)
}

// manageForms returns what can be done with a session.
func manageForms(s *protocol.Session, hold session.Hold) []form {
	at := func(do string) string { return pathOf("sessions", s.ID, do) }
	holds := form{To: at("hold"), Word: "Place a hold",
		Does:   "A legal hold keeps the session from being erased, by anybody.",
		Inputs: []input{{Name: "reason", Label: "Reason", Needed: true}}}
	if hold.Reason != "" {
		holds = form{To: at("hold"), Word: "Lift the hold", Danger: true,
			Does:   fmt.Sprintf("Held since %s: %s.", hold.PlacedAt.UTC().Format("2006-01-02"), hold.Reason),
			Inputs: []input{{Name: "lift", Value: "1"}}}
	}
	lost := fmt.Sprintf("Erases the session for ever: its %d messages of %d tokens, with its checkpoints, results, "+
		"runs, pins and tokens. What forks share stays theirs. Nothing of it can be brought back.",
		s.LastSeq, s.TotalTokens)
	return []form{
		{To: at("tokens"), Word: "Make a token", Does: "An agent reads its own session with a token, and nothing else.",
			Inputs: []input{{Name: "name", Label: "Name"}, {Name: "minutes", Label: "Minutes", Value: "60"},
				{Name: "scope", Label: "It may", Choices: []string{"read", "read and compact"}}}},
		{To: at("fork"), Word: "Fork", Does: "Makes a session that has this log up to a message.",
			Inputs: []input{{Name: "id", Label: "Id", Needed: true},
				{Name: "seq", Label: "Through message", Value: strconv.FormatInt(s.LastSeq, 10)}}},
		{To: at("export"), Word: "Export", Does: "Writes all of the log into a file, which varve import reads. The " +
			"audit trail has a row of it."},
		{To: at("archive"), Word: "Archive", Does: "Moves it into its archive. It is in no list until it is restored."},
		holds,
		{To: at("erase"), Word: "Erase", Does: lost, Danger: true, Inputs: []input{sure("the session's id")}},
	}
}

func makeToken(v *visit) error {
	wanted := protocol.TokenRequest{Name: v.r.PostFormValue("name"), Scopes: []session.Scope{session.ScopeRead}}
	minutes, ok := v.count("minutes")
	if !ok {
		return v.notSure("a number of minutes")
	}
	wanted.TTLSeconds = int(minutes * 60)
	if v.r.PostFormValue("scope") != "read" {
		wanted.Scopes = append(wanted.Scopes, session.ScopeCompact)
	}
	made, err := client.CreateToken.With(v.ctx, v.api, client.Options{Body: wanted}, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.manage(made.Value.Text)
}

func revokeToken(v *visit) error {
	id := v.r.PathValue("id")
	return v.then(client.RevokeToken.Call(v.ctx, v.api, id, v.r.PathValue("token")), "sessions", id, "manage")
}

func forkSession(v *visit) error {
	seq, ok := v.count("seq")
	if !ok {
		return v.notSure("the number of a message")
	}
	wanted := protocol.ForkRequest{ID: v.r.PostFormValue("id"), Seq: seq}
	made, err := client.ForkSession.With(v.ctx, v.api, client.Options{Body: wanted}, v.r.PathValue("id"))
	return v.then(err, "sessions", made.Value.ID)
}

// exportSession hands the archive of a session over, as the API writes it.
func exportSession(v *visit) error {
	return v.pass("/v1/sessions/"+url.PathEscape(v.r.PathValue("id"))+"/export", "session.ndjson")
}

// holdSession places a hold for a reason, or lifts the one that there is.
func holdSession(v *visit) error {
	id, reason := v.r.PathValue("id"), v.r.PostFormValue("reason")
	if v.r.PostFormValue("lift") != "" {
		return v.then(client.DeleteHold.Call(v.ctx, v.api, id), "sessions", id, "manage")
	}
	_, err := client.PutHold.With(v.ctx, v.api, client.Options{Body: protocol.HoldRequest{Reason: reason}}, id)
	return v.then(err, "sessions", id, "manage")
}

func archiveSession(v *visit) error {
	_, err := client.ArchiveSession.Call(v.ctx, v.api, v.r.PathValue("id"))
	return v.then(err, "archives")
}

func eraseSession(v *visit) error {
	id := v.r.PathValue("id")
	if !v.isSure(id) {
		return v.notSure("the session's id")
	}
	return v.then(client.DeleteSession.Call(v.ctx, v.api, id), "sessions")
}
