package process_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/session"
)

// freeAddr returns an address on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := process.Listen(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestOperatorsAreServedOnTheirAddress starts an API whose operators have an address and a login of their own.
func TestOperatorsAreServedOnTheirAddress(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	db := config.Database{URL: pgtest.API(dsn), Connections: 4}
	admin := config.Database{URL: pgtest.Admin(dsn), Connections: 2}
	store, err := process.OpenStore(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Pool().Close()
	key := session.NewOperatorKey()
	if _, err := store.CreateOperatorKey(t.Context(), "", key, nil); err != nil {
		t.Fatal(err)
	}
	settings := config.API{Addr: "127.0.0.1:0", AdminAddr: freeAddr(t), AdminURL: admin.URL}
	ctx, stop := context.WithCancel(t.Context())
	public, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- process.API(ctx, settings, config.LLM{}, db, slog.New(slog.DiscardHandler), func(a net.Addr) { public <- a.String() })
	}()
	for addr, want := range map[string]int{settings.AdminAddr: http.StatusOK, <-public: http.StatusNotFound} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/v1/admin/keys", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", addr, response.StatusCode, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	settings.AdminURL = ""
	if err := process.API(t.Context(), settings, config.LLM{}, db, slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), "VARVE_ADMIN_DATABASE_URL is not") {
		t.Errorf("an address without a login: %v", err)
	}
}
