package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestARetentionIsSetAndShown sets when sessions expire, and looks at what would be erased.
func TestARetentionIsSetAndShown(t *testing.T) {
	t.Parallel()
	u, tenant := shareUp(t)
	own := commander{u, u.key}
	if code, answer, err := u.call("PUT", "/v1/sessions/s1", ""); err != nil || code != 201 {
		t.Fatal(code, string(answer), err)
	}
	own.has([]string{"retention", "show"}, "never expires")
	own.run(exitUsage, "retention", "set", "--idle", "720h")
	own.run(exitUsage, "retention", "set", "--idle", "1s", "--yes")
	own.run(exitUsage, "retention", "set", "--yes")
	own.has([]string{"retention", "set", "--idle", "720h", "--age", "2000h", "--yes"}, "720h0m0s", "2000h0m0s")
	own.has([]string{"retention", "show", "--json"}, `"idle_seconds":2592000`)
	own.has([]string{"retention", "preview", "--idle", "1h"}, "expired  0", "held     0")
	own.has([]string{"retention", "set", "--idle", "720h", "--archive", "--archives-for", "8760h", "--yes"}, "archived", "8760h0m0s")
	own.run(exitUsage, "retention", "set", "--idle", "720h", "--archives-for", "8760h", "--yes")
	own.has([]string{"retention", "set", "--never", "--yes"}, "never expires")
	operator := commander{u, keyIn(u, operatorKeyFile)}
	operator.run(exitUsage, "tenants", "retention", tenant, "--yes")
	operator.has([]string{"tenants", "retention", tenant, "--age", "2000h", "--yes"}, tenant)
	own.has([]string{"retention", "show"}, "age at most", "2000h0m0s")
}

// viewNames matches the names of views where commands print them.
var viewNames = regexp.MustCompile(
	`\b(?:show|showList|writeView|writeAligned|printValue|named)\([^"()]*"([a-z ]+)"`)

func TestEveryViewThatACommandPrintsIsThere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range viewNames.FindAllStringSubmatch(string(source), -1) {
			if found++; views.Lookup(name[1]) == nil {
				t.Errorf("%s prints the view %q, which views.tmpl does not have", file, name[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("%d views are printed", found)
	}
}
