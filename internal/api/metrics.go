package api

import (
	"cmp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/api/request"
)

// The metrics of requests. Their labels are of the route table and of HTTP: none names a tenant or a session.
var (
	requestsInFlight = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "varve_http_requests_in_flight", Help: "Requests that are being answered, event streams included.",
	})
	requestsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_http_requests_total", Help: "Answered requests, by route (none: there is none) and status.",
	}, []string{"method", "route", "status"})
	requestSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "varve_http_request_duration_seconds", Help: "How long requests took, with the sending of their answers.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"method", "route"})
)

// count counts a request that was answered.
func count(req *request.Request, began time.Time, status int) {
	route := cmp.Or(req.Route, "none")
	method := req.R.Method
	if req.Route == "" {
		method = "any" // a client may send any word
	}
	requestsTotal.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	requestSeconds.WithLabelValues(method, route).Observe(time.Since(began).Seconds())
}
