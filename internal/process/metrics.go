package process

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varve-dev/varve/internal/api"
)

// serveMetrics serves GET /metrics of a process that has no API, until stop is called. It serves nothing without an
// address.
func serveMetrics(ctx context.Context, addr string) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	server := api.NewServer(mux)
	go func() { _ = server.Serve(listener) }() // it returns when the server is closed
	return func() { _ = server.Close() }, nil
}
