// Package clienttest has a client of a server that a test plays.
package clienttest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/varve-dev/varve/client"
)

// Of serves a handler, one request at a time, to a client that never really waits.
func Of(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	var one sync.Mutex
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		h(w, r)
	}))
	t.Cleanup(web.Close)
	base, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(base, "vk_test", t.Output())
	c.Patience = 5 * time.Second
	c.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}
