package webhook_test

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/webhook"
)

// TestWebhooksAreManagedFromTheCommandLine runs each command.
func TestWebhooksAreManagedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := apitest.New(t, webhook.Feature())
	server := httptest.NewServer(w.Server)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	run := func(asJSON bool, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		var cli struct{ kong.Plugins }
		cli.Plugins = kong.Plugins{webhook.Feature().Command}
		parsed, err := kong.Must(&cli).Parse(append([]string{"webhooks"}, args...))
		if err != nil {
			t.Fatal(err)
		}
		parsed.BindTo(t.Context(), (*context.Context)(nil))
		to := &command.Console{API: client.New(base, w.Key, io.Discard), JSON: asJSON, Out: &out}
		if err := parsed.Run(to); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	hook := apitest.Decoded[webhook.Created](t, run(true, "create", "https://hooks.example/varve", "--types", "session.due"))
	id := hook.ID.String()
	for _, c := range []struct {
		args, want []string
	}{
		{[]string{"set", id, "--name", "mine", "--to", "https://hooks.example/other"}, []string{"mine", "other", "session.due"}},
		{[]string{"list"}, []string{id, "PENDING"}},
		{[]string{"show", id}, []string{`"pending"`}},
		{[]string{"rotate", id, "--overlap", "1m"}, []string{"whsec_"}},
		{[]string{"enable", id}, []string{id}},
		{[]string{"test", id}, nil},
		{[]string{"deliveries", id}, []string{"ATTEMPTS"}},
		{[]string{"delete", id}, nil},
	} {
		out := run(false, c.args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("webhooks %v prints %q, without %s", c.args, out, want)
			}
		}
	}
	if out := run(false, "list"); strings.Contains(out, id) || !strings.HasPrefix(hook.Secret, "whsec_") {
		t.Errorf("the webhook is there: %s", out)
	}
}
