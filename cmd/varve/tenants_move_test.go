package main

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

// TestATenantMovesByCommand makes a tenant with an id that was chosen before, moves it there and back, and names what
// the commands refuse.
func TestATenantMovesByCommand(t *testing.T) {
	t.Parallel()
	const id = "0198f0c1-7c1e-7000-8000-00000000000c"
	here, there := administrator{t, pgtest.New(t)}, administrator{t, pgtest.New(t)}
	if out, _ := here.run("tenants", "create", "acme", "--id", id); out != id+"\n" {
		t.Errorf("the tenant is %s", out)
	}
	here.fails("there is a tenant", "tenants", "create", "other", "--id", id)
	here.fails("--to is missing", "tenants", "move", "acme")
	here.fails("--forget takes neither", "tenants", "move", "acme", "--forget", "--abort")
	here.fails("VARVE_OBJECTS", "tenants", "move", "acme", "--to", there.url, "--to-objects", "ftp://h")
	here.fails("--freeze must be", "tenants", "move", "acme", "--to", there.url, "--freeze", "1ms")
	here.fails("has not moved away", "tenants", "move", "acme", "--forget")
	here.run("keys", "create", "--tenant=acme", "--name=ci")

	here.run("tenants", "move", "acme", "--to", there.url, "--abort") // there is nothing to give up
	out, notes := here.run("tenants", "move", "acme", "--to", there.url)
	if out != id+"\n" || !strings.Contains(notes, "writes were refused for") {
		t.Errorf("moving it: %s%s", out, notes)
	}
	if listed, _ := there.run("keys", "list", "--tenant=acme"); !strings.Contains(listed, "ci") {
		t.Errorf("the keys are %s", listed)
	}
	here.fails("already", "tenants", "move", "acme", "--to", there.url, "--abort")
	here.run("tenants", "move", "acme", "--forget")
	there.run("tenants", "move", id, "--to", here.url)
	if listed, _ := here.run("tenants", "list"); !strings.Contains(listed, id) {
		t.Errorf("the tenants are %s", listed)
	}
}

// fails requires that a command fails and says why.
func (a administrator) fails(why string, args ...string) {
	a.Helper()
	said, err := program(a.Context(), append(args, "--database-url", a.url)...).CombinedOutput()
	if err == nil || !strings.Contains(string(said), why) {
		a.Errorf("%s: %v\n%swant %q", strings.Join(args, " "), err, said, why)
	}
}
