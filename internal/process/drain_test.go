package process_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
	"github.com/varve-dev/varve/internal/process"
)

var (
	drainRounds  = flag.Int("drain-rounds", 2, "how often an API is stopped under requests")
	drainClients = flag.Int("drain-clients", 40, "how many clients it has then")
)

// Every client sends one request after the other on a connection that is kept, until an answer closes it: from then on
// a load balancer would choose another process.
func TestNoRequestIsCutWhenAProcessStops(t *testing.T) {
	t.Parallel()
	db := config.Database{URL: pgtest.New(t), Connections: 4}
	key := makeKey(t, db, newTenant)
	db.URL = pgtest.API(db.URL)
	for range *drainRounds {
		ctx, cancel := context.WithCancel(t.Context())
		addr, ended := make(chan net.Addr, 1), make(chan error, 1)
		settings := config.API{Addr: "127.0.0.1:0", DrainDelay: 2 * time.Second}
		go func() {
			ended <- process.API(ctx, settings, config.LLM{}, db, slog.New(slog.DiscardHandler), func(a net.Addr) { addr <- a })
		}()
		var url string
		select {
		case a := <-addr:
			url = fmt.Sprint("http://", a, "/v1/sessions/none")
		case err := <-ended:
			t.Fatal(err)
		}
		var clients, begun sync.WaitGroup
		for range *drainClients {
			begun.Add(1)
			clients.Go(func() {
				if err := askUntilClosed(url, key, begun.Done); err != nil {
					t.Error(err)
				}
			})
		}
		begun.Wait()
		cancel()
		clients.Wait()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// askUntilClosed sends requests until an answer closes the connection. It calls begun after the first.
func askUntilClosed(url, key string, begun func()) error {
	client := http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		request, err := http.NewRequest("GET", url, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := client.Do(request)
		if begun != nil {
			begun()
			begun = nil
		}
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		_ = response.Body.Close() // all of it was read
		if response.Close {
			return nil
		}
	}
}
