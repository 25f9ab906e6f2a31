package jobs

import (
	"context"
	"time"

	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// featuresOf returns what the features add to a worker.
func featuresOf(
	config Config, workers *river.Workers, queues map[string]river.QueueConfig,
	lease *lease, slots *admit.Gate, beside int,
) *feature.Worker {
	admission, thawer := newAdmission(config), config.thawer()
	w := &feature.Worker{
		Store: config.Store, Log: config.Log, Networks: config.Networks, Workers: workers, Queues: queues,
		Memory: map[string]int64{}, FromLog: map[string]bool{}, Died: map[string]feature.Death{},
		Rest: config.Rest, JobTimeout: config.JobTimeout, CPU: config.CPU, Trace: config.Trace,
		Compactor: config.compactor(), Beside: beside, Slots: slots, Thaw: thawer.Read,
		Blameless: func(ctx context.Context, err error, began time.Time) bool {
			return lease.classOf(ctx, err, began) == session.FailureInfrastructure
		},
	}
	w.Hold = func(ctx context.Context, key session.Key) (release func(), err error) {
		if err := thawer.Read(ctx, key); err != nil {
			return nil, err
		}
		return admission.hold(ctx, key)
	}
	config.Store.Follow(feature.Followers(config.Features))
	for _, f := range config.Features {
		if f.Jobs != nil {
			f.Jobs(w)
		}
	}
	return w
}

// prunings returns what the features prune of a tenant.
func prunings(features []feature.Feature) (all []postgres.Pruning) {
	for _, f := range features {
		all = append(all, f.Prunings...)
	}
	return all
}

// runBeats calls what the features ask for, until the client has stopped.
func (c *Client) runBeats() {
	tick := time.NewTicker(c.lease.every)
	defer tick.Stop()
	var gauged time.Time
	for {
		select {
		case <-tick.C:
		case <-c.Client.Stopped():
			return
		}
		c.run(c.features.Beats)
		if time.Since(gauged) >= gaugeEvery {
			gauged = time.Now()
			c.run(c.features.Gauges)
		}
	}
}

func (c *Client) run(all []func(context.Context) error) {
	for _, do := range all {
		ctx, cancel := feature.Recording(context.Background())
		if err := do(ctx); err != nil && !postgres.IsAway(err) {
			c.lease.log.WarnContext(ctx, "what a feature does at each beat waits for the next one", "error", err)
		}
		cancel()
	}
}
