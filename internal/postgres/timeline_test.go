package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// The points of a timeline are the sums of all messages before, whatever was removed and however few there are.
func TestATimelineAddsUpEveryMessage(t *testing.T) {
	t.Parallel()
	store, tenant := newStore(t)
	random := rand.New(rand.NewPCG(7, 7))
	roles := []string{"user", "assistant", "assistant", "tool"}
	for _, n := range []int{1, 3, 60, 300} {
		at := newSession(t, store, tenant, fmt.Sprint(n))
		var messages []session.NewMessage
		for i := range n {
			m := message(fmt.Sprint(i), random.IntN(20))
			m.Role = roles[random.IntN(len(roles))]
			messages = append(messages, m)
		}
		mustAppend(t, store, batch(at, messages...))
		for range n / 20 {
			removeNewest(t, store, at)
			mustAppend(t, store, batch(at, message("behind a gap", 3)))
		}
		found, log, err := store.Messages(t.Context(), at, postgres.Range{Removed: true, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, points := range []int64{2, 7, 50, 1000} {
			got, err := store.Timeline(t.Context(), at, points)
			if diff := cmp.Diff(grownOf(log, points, found.LastSeq), got); err != nil || diff != "" {
				t.Errorf("%d messages, %d points: %v %s", n, points, err, diff)
			}
		}
	}
}

// grownOf adds a log up message by message.
func grownOf(log []session.Message, points, last int64) (list []session.Growth) {
	var sum session.Growth
	piece, before := int64(-1), ""
	for _, m := range log {
		sum.Seq, sum.At = m.Seq, m.CreatedAt
		sum.Tokens += int64(m.Tokens)
		sum.ViewTokens = sum.Tokens // nothing was capped
		if m.Role == "assistant" && before != "assistant" {
			sum.Requests++
		}
		before = m.Role
		if of := (m.Seq - 1) * points / last; of != piece {
			piece, list = of, append(list, sum)
		}
		list[len(list)-1] = sum
	}
	return list
}
