package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// boundedTokens is the max_tokens of the reads of boundedLoads.
const boundedTokens = 10_000

// boundedLoads returns reads with max_tokens of logs that no checkpoint covers. The floor of a long one is one of 1,000
// messages: what comes before the bound must cost nothing.
func boundedLoads(b *bench) (cases []loadCase) {
	sizes := []int{1_000, 10_000, 100_000}
	if b.against != "" {
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		cases = append(cases, loadCase{
			name: fmt.Sprintf("view, max_tokens=%d, log of %d messages beside 1000", boundedTokens, n), unit: "reads/s",
			goal: ">= 0.9",
			prepare: func(_ context.Context, s *site) error {
				if err := s.createLog(sizes[0]); err != nil {
					return err
				}
				return s.createLog(n)
			},
			round: func(s *site) (sample, error) { return s.boundedViews(n) },
			floor: func() (sample, error) { return b.here.boundedViews(sizes[0]) },
		})
	}
	return cases
}

func logID(messages int) string { return fmt.Sprintf("log-%d", messages) }

// createLog makes a session of that many messages, unless it is there.
func (s *site) createLog(messages int) error {
	id := logID(messages)
	if s.made[id] {
		return nil
	}
	s.made[id] = true
	c := s.newClient()
	if err := c.createSession(id); err != nil {
		return err
	}
	if err := s.unbound(context.Background()); err != nil {
		return err
	}
	return c.appendAll(id, newCorpus(64).conversation(messages, crossingResult))
}

// boundedViews returns a round of reads with max_tokens over HTTP.
func (s *site) boundedViews(messages int) (sample, error) {
	c := s.newClient()
	path := fmt.Sprintf("%s/context?max_tokens=%d", sessionPath(logID(messages)), boundedTokens)
	request := c.request("GET", path, nil)
	if err := c.call(request, http.StatusOK); err != nil {
		return nil, err
	}
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, readers, func(int) func() error {
			c := s.newClient()
			return func() error { return c.call(request, http.StatusOK) }
		})
	}, nil
}
