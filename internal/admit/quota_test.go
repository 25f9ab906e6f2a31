package admit_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/session"
)

// TestAnotherQuotaHoldsInEveryProcess changes what is stored of a tenant's quotas under two processes that it asks each
// second: both hold it within the 15 seconds that the description of PATCH /v1/admin/tenants/{tenant} promises.
func TestAnotherQuotaHoldsInEveryProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := session.Quotas{Requests: 1000}
		quotas := func(context.Context, uuid.UUID, session.Quotas) (session.Quotas, error) { return stored, nil }
		none := func(context.Context, uuid.UUID) (session.Stored, error) { return session.Stored{}, nil }
		tenant := uuid.Must(uuid.NewV7())
		processes := []*admit.Book{admit.NewBook(quotas, none, session.Quotas{}), admit.NewBook(quotas, none, session.Quotas{})}
		ask := func(book *admit.Book) error {
			return book.Account(t.Context(), tenant).Request(time.Now(), 0, http.Header{})
		}
		for i, book := range processes {
			if err := ask(book); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
		stored = session.Quotas{Requests: 0.001, Burst: 1}
		refused := make([]bool, len(processes))
		for range 15 {
			time.Sleep(time.Second)
			for i, book := range processes {
				refused[i] = ask(book) != nil
			}
			synctest.Wait()
		}
		for i := range processes {
			if !refused[i] {
				t.Errorf("process %d has not heard of the other quota", i)
			}
		}
	})
}
