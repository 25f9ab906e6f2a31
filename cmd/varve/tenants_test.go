package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// commander runs commands with a key on a varve up.
type commander struct {
	*up
	key string
}

// run requires that a command ends with a code, and returns what it printed.
func (c commander) run(code int, args ...string) string {
	c.Helper()
	out, got := c.exits(append(args, "--key", c.key)...)
	if got != code {
		c.Fatalf("%v: exit code %d, want %d: %s", args, got, code, out)
	}
	return out
}

// has requires that a command which ends well prints some texts.
func (c commander) has(args []string, texts ...string) {
	c.Helper()
	out := c.run(0, args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			c.Errorf("%v printed no %q: %s", args, text, out)
		}
	}
}

// lastLine returns the last line of what was printed.
func lastLine(text string) string {
	lines := strings.Fields(text)
	return lines[len(lines)-1]
}

// keyIn returns the key of a file of the data directory.
func keyIn(u *up, file string) string {
	u.Helper()
	key, err := readKey(filepath.Join(u.data, file))
	if err != nil {
		u.Fatal(err)
	}
	return key
}

// TestTenantsAreManagedOverHTTP makes a tenant with an operator's key, changes it, and deletes it with a receipt.
func TestTenantsAreManagedOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u, _ := shareUp(t)
	op := commander{u, keyIn(u, operatorKeyFile)}
	policy := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(policy, []byte(`{"target":0.41}`), 0o600); err != nil {
		t.Fatal(err)
	}
	id := uuid.NewString()
	made := op.run(0, "tenants", "create", "acme", "--id", id, "--quotas", `{"sessions":7}`, "--policy", policy, "--role", "admin")
	own := commander{u, lastLine(made)}
	if !strings.Contains(made, id) || !wellFormed(own.key) {
		t.Fatalf("the tenant is %s", made)
	}
	op.has([]string{"tenants", "list"}, "acme", id, "LIVE KEYS")
	op.has([]string{"tenants", "rename", "acme", "acme 2"}, "acme 2")
	op.has([]string{"tenants", "show", "acme 2"}, `"sessions":7`)
	op.has([]string{"tenants", "policy", "acme 2"}, "0.41")
	op.has([]string{"tenants", "limits", "acme 2", "--set", `{"sessions":8}`}, `{"sessions":8}`)
	op.has([]string{"tenants", "limits", id}, `8}`)
	op.run(0, "sessions", "all", "--tenant", "acme 2")
	if said, code := u.exits("sessions", "all"); code != 0 {
		t.Errorf("without VARVE_KEY an operator's command has the operator's key: %s", said)
	}
	op.has([]string{"recompact", "tenants", "start", "--tenant", "acme 2"}, "1, 1 done", "0 of 0")
	group := strings.Fields(op.run(0, "recompact", "tenants", "list"))[3]
	op.has([]string{"recompact", "tenants", "show", group, "--tenant", "acme 2"}, "done")
	op.has([]string{"recompact", "tenants", "show", group, "--tenant", id, "--sessions"}, "SESSION")
	op.has([]string{"recompact", "tenants", "compare", group}, "sessions changed")
	op.has([]string{"recompact", "tenants", "rollback", group}, "1 roll")
	op.run(exitNotFound, "recompact", "tenants", "show", group, "--tenant", defaultTenant)
	own.has([]string{"replay", "--tenant", "acme 2", "--policy", "tenant", "--detach"}, "queued")
	own.run(exitAuth, "replay", "--tenant", "acme", "--policy", "tenant", "--detach")
	own.has([]string{"failures"}, "SESSION")
	op.has([]string{"failures"}, "TENANT")
	own.run(exitNotFound, "failures", "retry", "none")
	own.run(exitUsage, "failures", "retry", "none", "--tenant", "acme 2")
	op.run(exitUsage, "failures", "retry", "none")
	op.has([]string{"tenants", "suspend", id, "--refuse", "reads"}, "reads refused")
	op.has([]string{"tenants", "resume", id}, "acme 2")
	own.run(exitAuth, "tenants", "list")
	op.run(exitUsage, "tenants", "delete", id)

	op.has([]string{"holds", "place", "--tenant", id, "--reason", "case 7"}, "case 7")
	if said := op.run(exitConflict, "tenants", "delete", id, "--confirm", id); !strings.Contains(said, "case 7") {
		t.Errorf("what is held: %s", said)
	}
	op.has([]string{"holds", "show", "--tenant", "acme 2"}, "case 7")
	op.has([]string{"holds", "list", "--tenant", "acme 2"}, "all of the tenant", "case 7")
	op.run(0, "holds", "lift", "--tenant", id)
	if _, code := u.exits("tenants", "delete", id, "--confirm", uuid.NewString()); code == 0 {
		t.Error("another tenant confirms the deletion")
	}
	receipt := filepath.Join(dir, "receipt")
	var erasure session.Erasure
	out := op.run(0, "tenants", "delete", "acme 2", "--confirm", id, "--receipt", receipt, "--json")
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &erasure); err != nil || erasure.State != session.ErasureDone {
		t.Fatalf("%s: %v", out, err)
	}
	op.has([]string{"tenants", "deletion", erasure.ID.String()}, `"state":"done"`)
	op.has([]string{"tenants", "deletion"}, erasure.ID.String())
	if said, code := u.exits("verify", "--receipt", receipt); code != 0 || !strings.Contains(said, id) {
		t.Errorf("exit code %d: %s", code, said)
	}
	own.run(exitAuth, "keys", "list")
}

// TestKeysAndHoldsAreManagedOverHTTP does so with a tenant's key, and keys also with an operator's.
func TestKeysAndHoldsAreManagedOverHTTP(t *testing.T) {
	t.Parallel()
	u, tenant := shareUp(t)
	own, op := commander{u, u.key}, commander{u, keyIn(u, operatorKeyFile)}
	for _, c := range []struct {
		commander
		flags []string
	}{{own, nil}, {op, []string{"--tenant", tenant}}} {
		var key struct{ ID, Key string }
		out := c.run(0, slices.Concat([]string{"keys", "create", "--role", "viewer", "--name", "ci", "--json"}, c.flags)...)
		if err := json.Unmarshal([]byte(strings.SplitAfter(out, "\n")[0]), &key); err != nil || !wellFormed(key.Key) {
			t.Fatalf("%s: %v", out, err)
		}
		c.has(slices.Concat([]string{"keys", "list"}, c.flags), key.ID, "ci")
		rotated := c.run(0, slices.Concat([]string{"keys", "rotate", key.ID, "--overlap", "0s"}, c.flags)...)
		if !wellFormed(strings.Fields(rotated)[0]) {
			t.Errorf("the new key is %s", rotated)
		}
		c.run(0, slices.Concat([]string{"keys", "revoke", key.ID}, c.flags)...)
	}
	own.run(exitUsage, "keys", "list", "--tenant", "acme")
	op.run(0, "keys", "create", "--operator", "--name", "ops")
	op.has([]string{"keys", "list", "--operator"}, "ops")

	u.want(201, "PUT", "/v1/sessions/held", "")
	own.has([]string{"holds", "place", "held", "--reason", "case 8"}, "case 8")
	own.has([]string{"holds", "show", "held"}, "case 8")
	own.has([]string{"holds", "list"}, "held", "case 8")
	own.run(exitConflict, "sessions", "rm", "held", "--yes")
	own.run(0, "holds", "lift", "held")
	own.run(exitUsage, "holds", "lift")
}
