package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// Of 25,000 sessions a page looks at 10,000: what is rare is found behind pages that have nothing, each once.
func TestASearchLooksAtABoundedNumberOfSessions(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	err := execInTenant(t, store, tenant, `
		INSERT INTO sessions (tenant_id, key, id, window_tokens, window_source, policy_id, created_at, model)
		SELECT $1, gen_random_uuid(), 's' || i, 1000, 'default', $2, '2026-01-01'::timestamptz - i * interval '1 second',
		       'm' || i % 9000
		  FROM generate_series(1, 25000) i`, [16]byte(tenant), [16]byte(uuid.Nil))
	if err != nil {
		t.Fatal(err)
	}
	search := session.Search{Model: "m8500"}
	page, seen := session.Page{Limit: 2}, []string{}
	pages := 0
	for {
		found, beyond, err := store.FindSessions(t.Context(), tenant, search, page)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, s := range found {
			seen = append(seen, s.ID)
		}
		if beyond == nil {
			break
		}
		page.Time, page.ID = beyond.Time, beyond.ID
	}
	if fmt.Sprint(seen) != "[s8500 s17500]" || pages != 3 {
		t.Errorf("%d pages with %v", pages, seen)
	}
}

func TestASearchHoldsEveryCondition(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	model, small := "gpt-4o", 2000
	for _, id := range []string{"a", "b", "c"} {
		change := session.Change{Metadata: []byte(`{"user":"u1","app":"x"}`)}
		if id == "b" {
			change = session.Change{Model: &model, WindowTokens: &small, Metadata: []byte(`{"user":"u2"}`)}
		}
		if _, _, err := store.Create(t.Context(), session.Address{Tenant: tenant, ID: id}, change, nil); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, store, batch(session.Address{Tenant: tenant, ID: "b"}, message("large", 3000)))
	mustAppend(t, store, batch(session.Address{Tenant: tenant, ID: "c"}, message("small", 10)))
	if _, _, err := store.Fork(t.Context(), session.Fork{From: session.Address{Tenant: tenant, ID: "c"}, ID: "d"}); err != nil {
		t.Fatal(err)
	}
	other := newTenant(t, store, "other")
	newSession(t, store, other, "e")
	for want, search := range map[string]session.Search{
		"dca":  {Metadata: []byte(`{"user":"u1"}`)},
		"b":    {Model: "gpt-4o"},
		"b ":   {OverWindow: true},
		" b":   {MinTokens: 11},
		"dcb":  {Format: session.OpenAIChat},
		"d":    {ForkedFrom: "c"},
		"":     {ForkedFrom: "a"},
		"dcb ": {UpdatedAfter: time.Now().Add(-time.Hour)},
		" ":    {UpdatedAfter: time.Now().Add(time.Hour)},
		"  ":   {Failing: true},
		"   ":  {PolicyVersionBelow: 9},
		"dc":   {Metadata: []byte(`{"app":"x"}`), MinTokens: 1, Format: session.OpenAIChat},
	} {
		found, beyond, err := store.FindSessions(t.Context(), tenant, search, session.Page{Limit: 10})
		got := ""
		for _, s := range found {
			got += s.ID
		}
		if err != nil || beyond != nil || got != trim(want) {
			t.Errorf("%+v finds %q, not %q: %v", search, got, trim(want), err)
		}
	}
}

// TestSessionsAreListedByTheirLastAppend appends to sessions while the pages of the list are read.
func TestSessionsAreListedByTheirLastAppend(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	touch := func(id string) {
		mustAppend(t, store, batch(session.Address{Tenant: tenant, ID: id}, texts("hello")...))
		mustCount(t, store, tenant, session.Reading{Session: id})
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		newSession(t, store, tenant, id)
		touch(id)
	}
	newSession(t, store, tenant, "silent")
	touch("b")
	mustAppend(t, store, batch(session.Address{Tenant: tenant, ID: "a"}, texts("not known yet")...))
	page, seen := session.Page{Limit: 2}, ""
	for range 10 {
		found, beyond, err := store.FindSessions(t.Context(), tenant, session.Search{ByAppend: true}, page)
		if err != nil || beyond != nil {
			t.Fatal(beyond, err)
		}
		for _, s := range found {
			seen += s.ID
			page.Time, page.ID = s.At, s.Key
		}
		if len(found) < page.Limit {
			break
		}
		for _, s := range found { // what was seen does not come again
			touch(s.ID)
		}
		if seen == "bf" {
			touch("d") // goes to the beginning, behind which this list is
		}
	}
	if seen != "bfeca" {
		t.Errorf("the list has %q", seen)
	}
	if _, err := store.AuditNext(t.Context(), 100, 100); err != nil { // what no process has noted
		t.Fatal(err)
	}
	found, _, err := store.FindSessions(t.Context(), tenant, session.Search{ByAppend: true, Format: session.OpenAIChat}, session.Page{Limit: 1})
	if err != nil || len(found) != 1 || found[0].ID == "silent" {
		t.Errorf("%v %v", found, err)
	}
}

// trim takes the spaces out that make keys of a map different.
func trim(text string) (letters string) {
	for _, r := range text {
		if r != ' ' {
			letters += string(r)
		}
	}
	return letters
}
