package process

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestADatabaseThatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	dsn := "host=" + t.TempDir() + " user=nobody dbname=nothing" // a socket that nobody listens on
	log := slog.New(slog.DiscardHandler)
	tries := 0
	opened, err := WhenThere(t.Context(), log, func() (int, error) {
		if tries++; tries < 3 {
			_, err := pgx.Connect(t.Context(), dsn)
			return 0, fmt.Errorf("database: %w", err)
		}
		return 42, nil
	})
	if err != nil || opened != 42 || tries != 3 {
		t.Errorf("%d after %d tries, %v", opened, tries, err)
	}
	for name, wrong := range map[string]error{
		"a wrong password": &pgconn.PgError{Code: "28P01"}, "no such database": &pgconn.PgError{Code: "3D000"},
		"an old schema": errors.New("run varve migrate"),
	} {
		tries = 0
		_, err := WhenThere(t.Context(), log, func() (int, error) {
			tries++
			return 0, wrong
		})
		if !errors.Is(err, wrong) || tries != 1 {
			t.Errorf("%s: %d tries, %v", name, tries, err)
		}
	}
	for code, want := range map[string]bool{"57P03": true, "53300": true, "08006": true} {
		if got := isNotThereYet(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%s is waited for: %t", code, got)
		}
	}
}

func TestAProcessThatWaitsForItsDatabaseIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	front := &entrance{}
	ask := func(path string) int {
		got := httptest.NewRecorder()
		front.ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, nil))
		return got.Code
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/v1/sessions": 503} {
		if got := ask(path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	front.open(http.NotFoundHandler())
	if got := ask("/readyz"); got != 404 {
		t.Errorf("once it is open: %d", got)
	}
}
