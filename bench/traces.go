package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// sampled is the share of the requests that are traced where not all are.
const sampled = "0.05"

// measureTraces measures the API's processor time of appends and views beside an API that sends traces to a collector:
// of all requests, and of a share of them. It adds what a scrape of the metrics takes.
func measureTraces(ctx context.Context, b *bench) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	collector := &http.Server{Handler: http.HandlerFunc(collect), ReadHeaderTimeout: time.Second}
	go func() { _ = collector.Serve(listener) }() // until it is closed
	defer collector.Close()
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().String()
	for _, one := range []struct {
		name, of, goal string
		env            []string
	}{
		{"traced", "every request", "", nil},
		{"sampled", sampled + " of the requests", "<= 1.03", []string{
			"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=" + sampled,
		}},
	} {
		if err := b.measureTraced(ctx, one.name, one.of, one.goal, append(one.env, endpoint)); err != nil {
			return err
		}
	}
	return b.measureScrapes(ctx)
}

func collect(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

// tracePairs is how many rounds each side has at least: the difference is small.
const tracePairs = 9

// measureTraced measures beside an API with the environment.
func (b *bench) measureTraced(ctx context.Context, name, of, goal string, env []string) error {
	wanted := slices.DeleteFunc(b.tracedLoads(), func(c loadCase) bool {
		return !b.match.MatchString(c.name + ", beside traces of " + of)
	})
	if len(wanted) == 0 {
		return nil
	}
	traced, err := b.openSite(ctx, name, ".", env...)
	if err != nil {
		return err
	}
	if err := traced.seed(ctx); err != nil {
		return err
	}
	for _, c := range wanted {
		b.progress("%s, beside traces of %s", c.name, of)
		var sides []sample
		var clocks []*clock
		for _, s := range []*site{b.here, traced} {
			if err := c.prepare(ctx, s); err != nil {
				return err
			}
			round, err := c.round(s)
			if err != nil {
				return err
			}
			own := s.clocks()[0] // the API's
			sides, clocks = append(sides, timed(round, []*clock{own})), append(clocks, own)
		}
		if _, err := alternate(ctx, max(b.rounds, tracePairs), b.round, sides...); err != nil {
			return err
		}
		r := row{Name: c.name + ", beside traces of " + of, Unit: c.unit + " of the API's processor time", Goal: goal}
		b.add(r.pairs(clocks[0].rates[1:], clocks[1].rates[1:])) // the first turn warms
	}
	return nil
}

// tracedLoads returns appends of many writers, and reads of compacted views.
func (b *bench) tracedLoads() []loadCase {
	writers := appendCases[2]
	view := compactedCases[0]
	return []loadCase{
		{
			name: writers.name, unit: "appends/s", prepare: prepareAppends,
			round: func(s *site) (sample, error) { return s.appends(writers), nil },
		},
		{
			name: view.name(), unit: "reads/s",
			prepare: func(ctx context.Context, s *site) error { return b.createViewed(ctx, s, view.viewed) },
			round:   func(s *site) (sample, error) { return b.views(s, view) },
		},
	}
}

// measureScrapes measures what a scrape of the API's metrics takes, after appends and views.
func (b *bench) measureScrapes(ctx context.Context) error {
	c := b.here.newClient()
	own := b.here.clocks()[0]
	scrapes := timed(func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, 1, func(int) func() error {
			return func() error { return c.send("GET", "/metrics", nil, http.StatusOK) }
		})
	}, []*clock{own})
	if _, err := alternate(ctx, b.rounds, b.round, scrapes); err != nil {
		return err
	}
	took := 1000 / median(own.rates)
	b.add(row{Name: "a scrape of the API's metrics: the API's processor time", Unit: "ms", Value: took})
	return nil
}
