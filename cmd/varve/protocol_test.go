package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/client"
)

// sameMembers fails the test unless an answer has exactly the members of its type, with the values that the type read.
func sameMembers[T any](t *testing.T, a client.Answer[T]) {
	t.Helper()
	strict := json.NewDecoder(bytes.NewReader(a.Raw))
	strict.DisallowUnknownFields()
	var read T
	if err := strict.Decode(&read); err != nil {
		t.Errorf("%T does not declare all of %s: %v", read, a.Raw, err)
		return
	}
	again, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(a.Raw, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%T read from an answer and written again (-answer +again):\n%s", read, diff)
	}
}

// TestAnswersThatAreWrittenByHandAreThoseOfTheProtocol holds views and pages of messages, which the server writes without
// encoding/json, to the types that clients read them with.
func TestAnswersThatAreWrittenByHandAreThoseOfTheProtocol(t *testing.T) {
	t.Parallel()
	api := startAPI(t)
	chat, _ := conversation(20)
	withSystem := `{"system":[{"type":"text","text":"be brief"}],"messages":[` +
		strings.Repeat(`{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},`, 3) +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"none","content":"x"}]}]}`
	run := newRun(t, api, write(t, "chat.json", chat), write(t, "brief.json", []byte(withSystem)))
	if problems := run.all(t.Context()); problems != nil {
		t.Fatal(problems)
	}
	bounded, whole := false, false
	for _, id := range []string{"chat", "brief"} {
		for _, query := range []client.Query{{}, {"view": "full"}, {"max_tokens": 100}} {
			view, err := client.ReadContext.With(t.Context(), api, client.Options{Query: query}, id)
			if err != nil {
				t.Fatalf("%s %v: %v", id, query, err)
			}
			sameMembers(t, view)
			bounded = bounded || view.Value.Omitted != nil
			whole = whole || len(view.Value.System) > 0
		}
		for _, limit := range []int{3, 1000} {
			page, err := client.ListMessages.With(t.Context(), api, client.Options{Query: client.Query{"limit": limit}}, id)
			if err != nil {
				t.Fatal(err)
			}
			sameMembers(t, page)
			if more := limit == 3; page.Value.HasMore != more || (page.Value.NextSeq != nil) != more {
				t.Errorf("a page of %d: %s", limit, fmt.Sprint(page.Value.HasMore, page.Value.NextSeq))
			}
		}
	}
	if !bounded || !whole {
		t.Errorf("no view is bounded (%v) or has a system prompt (%v): the test has lost its subject", bounded, whole)
	}
}
