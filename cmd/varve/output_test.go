package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestViewsThatNoOtherTestPrints holds the names of fields and the order of columns of views.tmpl.
func TestViewsThatNoOtherTestPrints(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	id := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	tests := []struct {
		view  string
		value any
		want  string
	}{
		{"tenants", []session.Tenant{{ID: id, Name: "a\tb", CreatedAt: at}}, "ID NAME CREATED\n" + id.String() + ` "a\tb" 2026-01-02T03:04:05Z` + "\n"},
		{"keys", []session.APIKey{{ID: id, Name: "ci", Last4: "wxyz", Scopes: []session.Scope{"erase"}, CreatedAt: at, RevokedAt: &at}},
			"ID ENDS IN NAME SCOPES CREATED EXPIRES REVOKED LAST USED\n" +
				id.String() + " …wxyz ci erase 2026-01-02T03:04:05Z - 2026-01-02T03:04:05Z -\n"},
	}
	for _, tt := range tests {
		var out, got strings.Builder
		if err := writeView(&out, tt.view, tt.value); err != nil {
			t.Errorf("%s: %v", tt.view, err)
			continue
		}
		for line := range strings.Lines(out.String()) {
			got.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
		}
		if diff := cmp.Diff(tt.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.view, diff)
		}
	}
}

func TestTheReportOfAnImportShowsEveryKindOfFile(t *testing.T) {
	t.Parallel()
	run := importRun{files: []imported{
		{File: "dir/all.ndjson", Source: "varve", Import: &protocol.Import{Sessions: 2, Messages: 30, Duplicates: 4}},
		{File: "two.jsonl", Sessions: []importedSession{{Session: "a", Messages: 3, Appended: 1, TotalTokens: 9}, {Session: "b"}},
			Skipped: map[string]int{"progress": 2, "meta": 1}, Notes: []protocol.ImportNote{{Line: 4, Text: "odd"}}, Rejected: []rejection{{Line: 5, Reason: "not JSON"}}},
		{File: "none.json", Source: "varve"},
	}}
	var out, notes strings.Builder
	if err := run.print(&out, &notes, false); err != nil {
		t.Fatal(err)
	}
	want := `FILE        SESSION  MESSAGES  NEW  TOKENS  SKIPPED LINES  BAD LINES
all.ndjson  2 new    34        30   -       0              0
two.jsonl   a        3         1    9       3              1
two.jsonl   b        0         0    0                      
none.json   -        0         0    0       0              0
` + "two.jsonl: not conversation: 1 meta, 2 progress\ntwo.jsonl: line 4: odd\ntwo.jsonl: line 5: not JSON\n"
	if diff := cmp.Diff(want, out.String()+notes.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
