package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/webhook"
)

const (
	// deliverSlice is how long a webhook is looked after before those that wait.
	deliverSlice = 15 * time.Second

	// deliveredAtOnce is how many requests a webhook gets at once, each about another topic.
	deliveredAtOnce = 8

	// webhookWorkers is how many webhooks a process looks after at once.
	webhookWorkers = 16
)

// deliveriesTotal counts what this process has sent.
var deliveriesTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "varve_webhook_deliveries_total",
	Help: "Events that were sent to webhooks, by outcome: delivered, failed, or gone for a receiver that wants none.",
}, []string{"outcome"})

// deliverWorker sends a webhook what it has not got, round by round: of each topic one event at a time, so that the
// events of a session arrive in order. No transaction is open while it sends. A worker that dies has sent what it did
// not record: that is sent again.
type deliverWorker struct {
	river.WorkerDefaults[queue.DeliverArgs]
	Store  *postgres.Store
	Sender *webhook.Sender
	Log    *slog.Logger
}

// Work sends rounds until nothing is due, nothing gets through or the slice is over.
func (w *deliverWorker) Work(ctx context.Context, job *river.Job[queue.DeliverArgs]) error {
	tenant, id := job.Args.Tenant, job.Args.Webhook
	for end := time.Now().Add(deliverSlice); time.Now().Before(end); {
		next, err := w.Store.NextDeliveries(ctx, tenant, id, deliveredAtOnce)
		if errors.Is(err, session.ErrNotFound) || err == nil && len(next.Events) == 0 {
			break
		}
		if err != nil {
			return err
		}
		round := w.send(ctx, next)
		if ctx.Err() != nil {
			return ctx.Err() // the process stops: what was cut off is no failure of the receiver
		}
		disabled, err := w.Store.SettleDeliveries(ctx, tenant, id, round)
		if err != nil {
			return err
		}
		countDeliveries(round)
		if disabled {
			w.Log.WarnContext(ctx, "a webhook gets nothing any more: it is disabled", "tenant", tenant, "webhook", id)
			break
		}
		if !delivered(round) {
			break
		}
	}
	return w.Store.ReturnTurn(ctx, tenant, id, job.ID)
}

// send sends one round at once.
func (w *deliverWorker) send(ctx context.Context, next postgres.Deliveries) []postgres.Delivery {
	round := make([]postgres.Delivery, len(next.Events))
	var all sync.WaitGroup
	for i, e := range next.Events {
		all.Go(func() {
			a := w.Sender.Send(ctx, next.URL, next.Secrets, e)
			round[i] = postgres.Delivery{N: e.N, Error: a.Error, Wait: a.Wait, Gone: a.Gone}
		})
	}
	all.Wait()
	return round
}

func countDeliveries(round []postgres.Delivery) {
	for _, d := range round {
		outcome := "failed"
		switch {
		case d.Error == "":
			outcome = "delivered"
		case d.Gone:
			outcome = "gone"
		}
		deliveriesTotal.WithLabelValues(outcome).Inc()
	}
}

func delivered(round []postgres.Delivery) bool {
	for _, d := range round {
		if d.Error == "" {
			return true
		}
	}
	return false
}

// announce asks for the jobs of webhooks that have something to get, until the client has stopped.
func (c *Client) announce() {
	tick := time.NewTicker(c.lease.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.Client.Stopped():
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		if err := c.store.QueueDeliveries(ctx); err != nil && !postgres.IsAway(err) {
			c.lease.log.WarnContext(ctx, "webhooks wait for the next look", "error", err)
		}
		cancel()
	}
}
