package webhook

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/riverqueue/river"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// deliverSlice is how long a webhook is looked after before those that wait.
	deliverSlice = 15 * time.Second

	// deliveredAtOnce is how many requests a webhook gets at once, each about another topic.
	deliveredAtOnce = 8

	// webhookWorkers is how many webhooks a process looks after at once.
	webhookWorkers = 16
)

// The metrics of webhooks.
var (
	webhooksGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "varve_webhooks", Help: "Webhooks by state: idle, waiting for events, failing, disabled.",
	}, []string{"state"})
	deliveriesTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "varve_webhook_deliveries_total",
		Help: "Events that were sent to webhooks, by outcome: delivered, failed, or gone for a receiver that wants " +
			"none.",
	}, []string{"outcome"})
)

// deliverArgs name a webhook that has events to get.
type deliverArgs struct {
	Tenant  uuid.UUID `json:"tenant" river:"unique"`
	Webhook uuid.UUID `json:"webhook" river:"unique"`
	Failing bool      `json:"failing"` // it got nothing lately: others precede it
}

// Kind returns the job's name in River's tables.
func (deliverArgs) Kind() string { return "deliver" }

// InsertOpts allows one live job for each webhook, so that its events stay in order. A failure of the endpoint is no
// failure of the job: its row says when the next one comes. The next beat asks again for one that the database
// interrupts.
func (a deliverArgs) InsertOpts() river.InsertOpts {
	priority := river.PriorityDefault
	if a.Failing {
		priority = queue.LowestPriority
	}
	return river.InsertOpts{Queue: "webhook", Priority: priority, MaxAttempts: 4, UniqueOpts: queue.OneLive}
}

// jobs returns what adds the jobs of webhooks to a worker, whose requests take this long with their answers.
func jobs(limit time.Duration) func(*feature.Worker) {
	return func(w *feature.Worker) {
		s := store{w.Store}
		river.AddWorker(w.Workers, &deliverWorker{
			store: s, log: w.Log, sender: newSender(limit, deliveredAtOnce*webhookWorkers, w.Networks),
		})
		w.Queues["webhook"] = river.QueueConfig{MaxWorkers: webhookWorkers} // they wait for others
		w.Beats = append(w.Beats, s.queueDeliveries)
		w.Gauges = append(w.Gauges, s.gauge)
	}
}

// deliverWorker sends a webhook what it has not got, round by round: of each topic one event at a time, so that the
// events of a session arrive in order. No transaction is open while it sends. A worker that dies has sent what it did
// not record: that is sent again.
type deliverWorker struct {
	river.WorkerDefaults[deliverArgs]
	store  store
	sender *sender
	log    *slog.Logger
}

// Work sends rounds until nothing is due, nothing gets through or the slice is over.
func (w *deliverWorker) Work(ctx context.Context, job *river.Job[deliverArgs]) error {
	tenant, id := job.Args.Tenant, job.Args.Webhook
	for end := time.Now().Add(deliverSlice); time.Now().Before(end); {
		next, err := w.store.nextDeliveries(ctx, tenant, id, deliveredAtOnce)
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
		disabled, err := w.store.settleDeliveries(ctx, tenant, id, round)
		if err != nil {
			return err
		}
		countDeliveries(round)
		if disabled {
			w.log.WarnContext(ctx, "a webhook gets nothing any more: it is disabled", "tenant", tenant, "webhook", id)
			break
		}
		if !delivered(round) {
			break
		}
	}
	return w.store.returnTurn(ctx, tenant, id, job.ID)
}

// send sends one round at once.
func (w *deliverWorker) send(ctx context.Context, next deliveries) []delivery {
	round := make([]delivery, len(next.Events))
	var all sync.WaitGroup
	for i, e := range next.Events {
		all.Go(func() {
			a := w.sender.send(ctx, next.URL, next.Secrets, e)
			round[i] = delivery{N: e.N, Error: a.Error, Wait: a.Wait, Gone: a.Gone}
		})
	}
	all.Wait()
	return round
}

func countDeliveries(round []delivery) {
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

func delivered(round []delivery) bool {
	for _, d := range round {
		if d.Error == "" {
			return true
		}
	}
	return false
}
