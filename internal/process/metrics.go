package process

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/varve-dev/varve/internal/api"
)

// serveMetrics serves GET /metrics of a process that has no API, until stop is called. Without an address it serves
// nothing.
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
	go func() { _ = server.Serve(listener) }() // it ends when it is closed
	return func() { _ = server.Close() }, nil
}
