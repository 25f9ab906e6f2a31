package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
)

// asOperator runs a command of operators.
type asOperator struct{ sessionsAllCommand }

func (c asOperator) Run(ctx context.Context, to *command.Console) error {
	return c.sessionsAllCommand.Run(ctx, command.Operators{Console: to})
}

func TestSessionsAsAPersonReadsThem(t *testing.T) {
	t.Parallel()
	const one = `{"id":"chat\n42","format":"openai-chat","model":"","last_seq":21,"context_tokens":3400,"checkpoint":2,"created_at":"2026-01-02T03:04:05Z","last_append_at":null}`
	answers := map[string]string{
		`GET /v1/sessions?failing=true&limit=7&metadata=%7B%22user%22%3A%22u1%22%7D&min_tokens=3&order=last_append&quarantined=true&updated_after=2026-01-02T03%3A04%3A05Z `: `{"data":[` + one + `],"has_more":false}`,
		`GET /v1/admin/sessions?limit=3&order=failing&tenant=0198f0c1-7c1e-7000-8000-00000000000c `:                                                                          `{"data":[{"tenant_name":"acme","session":"chat\n42","tokens":90000,"bytes":360000,"context_tokens":130000,"window_tokens":128000,"failures":2}],"has_more":false}`,
		`GET /v1/sessions/s `:                          one,
		`DELETE /v1/sessions/s `:                       "",
		`POST /v1/sessions/s/fork {"id":"b","seq":17}`: one,
	}
	api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		answer, ok := answers[fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)]
		switch {
		case err != nil || !ok:
			t.Errorf("%s %s %s", r.Method, r.URL.RequestURI(), body)
			w.WriteHeader(http.StatusNotFound)
		case answer == "":
			w.WriteHeader(http.StatusNoContent)
		}
		_, _ = w.Write([]byte(answer))
	})
	three := 3
	for _, test := range []struct {
		command runner
		want    string
	}{
		{&sessionsListCommand{
			Metadata: map[string]string{"user": "u1"}, MinTokens: &three, Failing: true, Quarantined: true, Limit: 7, Order: "last_append",
			UpdatedAfter: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		}, `"chat\n42"  2026-01-02T03:04:05Z  -            openai-chat  -      21   3400    2`},
		{asOperator{sessionsAllCommand{Order: "failing", Tenant: "0198f0c1-7c1e-7000-8000-00000000000c", Limit: 3}},
			`acme    "chat\n42"  90000   360000  130000  128000  -            -          2         -`},
		{&sessionsShowCommand{Session: "s"}, one},
		{&sessionsRmCommand{Session: "s", Yes: true}, ""},
		{&forkCommand{Session: "s", ID: "b", Seq: 17}, `"chat\n42"`},
	} {
		var out strings.Builder
		if err := test.command.Run(t.Context(), &command.Console{API: api, Out: &out}); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("%T: %v\n%s", test.command, err, out.String())
		}
	}
}
