package postgres_test

import (
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// However a message is appended, its provider's id finds it, until it is removed.
func TestAnItemIsFoundByItsProvidersID(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	named := func(id string) session.NewMessage {
		m := message("hello "+id, 10)
		m.ItemID = id
		return m
	}
	exact := int64(9)
	appends := []session.Append{
		batch(at, message("without", 1), named("rs_plain"), message("without", 1)),
		batch(at, named("rs_usage")),
		batch(at, named("rs_exact")),
		batch(at, named("rs_many1"), named("rs_many2")),
	}
	appends[1].Usage = &session.Usage{InputTokens: 30}
	appends[2].ExactTokens = &exact
	for _, a := range appends {
		mustAppend(t, store, a)
	}
	for id, seq := range map[string]int64{"rs_plain": 2, "rs_usage": 4, "rs_exact": 5, "rs_many1": 6, "rs_many2": 7} {
		found, err := store.WithItemID(t.Context(), at, id)
		if err != nil || len(found) != 1 || found[0].Seq != seq {
			t.Errorf("%s: %+v, %v", id, found, err)
		}
	}
	if _, _, err := store.Remove(t.Context(), at, 2, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"rs_plain", "rs_none", "hello", ""} {
		if found, err := store.WithItemID(t.Context(), at, id); err != nil || len(found) != 0 {
			t.Errorf("%q: %+v, %v", id, found, err)
		}
	}
	if _, err := store.WithItemID(t.Context(), session.Address{Tenant: tenant, ID: "none"}, "rs_plain"); err == nil {
		t.Error("a session that is not there has items")
	}
}

// The ids are unique as far as their providers say so.
func TestOfManyItemsWithOneIDTheNewestAreFound(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	at := newSession(t, store, tenant, "chat")
	var messages []session.NewMessage
	for i := range 40 {
		m := message(fmt.Sprint(i), 1)
		m.ItemID = "rs_same"
		messages = append(messages, m)
	}
	mustAppend(t, store, batch(at, messages...))
	found, err := store.WithItemID(t.Context(), at, "rs_same")
	if err != nil || len(found) != 16 || found[0].Seq != 40 || found[15].Seq != 25 {
		t.Errorf("%d, %v", len(found), err)
	}
}
