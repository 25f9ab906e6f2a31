package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// The bounds of deliveries.
const (
	writtenAtOnce  = 1000 // events that become deliveries in one transaction
	turnsOfTenant  = 4    // webhooks of a tenant that are looked after at once
	turnsAtOnce    = 200  // of all tenants, in one look
	turnExpires    = time.Minute
	pausesFrom     = 3  // topics that fail, and no other was delivered: the whole webhook pauses
	disabledAfter  = 10 // rounds in a row that failed
	disabledWithin = 3 * 24 * time.Hour
)

// deliveryWaits are the times from a failed delivery to the next attempt.
var deliveryWaits = []time.Duration{
	time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	2 * time.Hour,
}

func deliveryWait(attempts int) time.Duration {
	return deliveryWaits[min(max(attempts, 1), len(deliveryWaits))-1]
}

// takeTurnsSQL takes the webhooks of all tenants that have something to get, a few of each tenant. One that was taken
// and is not given back is taken again when the turn has expired.
const takeTurnsSQL = `
	WITH due AS (
		SELECT t.tenant_id, t.webhook_id,
		       row_number() OVER (PARTITION BY t.tenant_id
		                              ORDER BY t.failing, t.retry_at NULLS FIRST, t.webhook_id) AS place
		  FROM webhook_turns t
		  LEFT JOIN event_heads h ON h.tenant_id = t.tenant_id
		 WHERE t.enabled
		   AND t.resume_at <= now()
		   AND (h.n > t.through_n OR t.retry_at <= now())
		   AND (t.taken_at IS NULL OR t.taken_at < now() - $1::interval)
	), chosen AS (
		SELECT t.tenant_id, t.webhook_id
		  FROM due d
		  JOIN webhook_turns t ON t.tenant_id = d.tenant_id AND t.webhook_id = d.webhook_id
		 WHERE d.place + (SELECT count(*)
		                    FROM webhook_turns o
		                   WHERE o.tenant_id = d.tenant_id AND o.taken_at >= now() - $1::interval) <= $2
		 ORDER BY d.place
		 LIMIT $3
		   FOR UPDATE OF t SKIP LOCKED
	)
	UPDATE webhook_turns t
	   SET taken_at = now()
	  FROM chosen c
	 WHERE t.tenant_id = c.tenant_id AND t.webhook_id = c.webhook_id
	RETURNING t.tenant_id AS tenant, t.webhook_id AS webhook, t.failing`

// queueDeliveries inserts the jobs of webhooks of all tenants that have something to get.
func (s store) queueDeliveries(ctx context.Context) error {
	rows, err := s.Pool().Query(ctx, takeTurnsSQL, turnExpires, turnsOfTenant, turnsAtOnce)
	if err != nil {
		return err
	}
	taken, err := pgx.CollectRows(rows, pgx.RowToStructByName[deliverArgs])
	if err != nil {
		return err
	}
	var failed []error
	for _, args := range taken {
		failed = append(failed, postgres.InTenant(ctx, s.Pool(), args.Tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, _, err := s.Queue().Insert(ctx, tx, args, time.Time{})
			return err
		}))
	}
	return errors.Join(failed...)
}

// deliveries are what a webhook gets next: of each topic the first event that it has not got.
type deliveries struct {
	URL     string
	Secrets []Secret
	Events  []session.Event
}

// nextDeliveries writes the events down that came since the last time, and returns those that are to be sent now, at
// most limit, those first that have failed least. A webhook that gets nothing lately gets one. ErrNotFound if the
// webhook is gone or disabled.
func (s store) nextDeliveries(ctx context.Context, tenant, id uuid.UUID, limit int) (deliveries, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (next deliveries, err error) {
		var failing bool
		err = tx.QueryRow(ctx, `
			SELECT w.url, t.failing
			  FROM webhooks w
			  JOIN webhook_turns t ON t.tenant_id = w.tenant_id AND t.webhook_id = w.id
			 WHERE w.tenant_id = $1 AND w.id = $2 AND w.disabled_at IS NULL
			   FOR NO KEY UPDATE`, tenant, id).Scan(&next.URL, &failing)
		if err != nil {
			return next, postgres.NotFound(err)
		}
		if failing {
			limit = 1
		}
		if _, err := tx.Exec(ctx, writeDeliveriesSQL, tenant, id, writtenAtOnce); err != nil {
			return next, err
		}
		next.Secrets, err = postgres.RowsIn(ctx, tx, scanSecret, `
			SELECT secret
			  FROM webhook_secrets
			 WHERE tenant_id = $1 AND webhook_id = $2 AND (expires_at IS NULL OR expires_at > now())
			 ORDER BY id DESC`, tenant, id)
		if err != nil {
			return next, err
		}
		next.Events, err = postgres.RowsIn(ctx, tx, postgres.ScanEvent, nextDeliveriesSQL, tenant, id, limit)
		return next, err
	})
}

func scanSecret(row pgx.CollectableRow) (s Secret, err error) {
	var secret []byte
	err = row.Scan(&secret)
	copy(s[:], secret)
	return s, err
}

// writeDeliveriesSQL makes deliveries of the next $3 events, however many wait: those of one topic must not hold up the
// others.
const writeDeliveriesSQL = `
	WITH turn AS (
		SELECT through_n
		  FROM webhook_turns
		 WHERE tenant_id = $1 AND webhook_id = $2
	), came AS (
		SELECT e.n, e.type, e.topic
		  FROM events e
		 WHERE e.tenant_id = $1 AND e.n > (SELECT through_n FROM turn)
		 ORDER BY e.n
		 LIMIT $3
	), written AS (
		INSERT INTO webhook_deliveries (tenant_id, webhook_id, n, topic)
		SELECT $1, $2, c.n, c.topic
		  FROM came c
		  JOIN webhooks w ON w.tenant_id = $1 AND w.id = $2
		 WHERE ` + wantedSQL + `
	)
	UPDATE webhook_turns
	   SET through_n = CASE WHEN c.n = $3 THEN c.last ELSE greatest(through_n, c.last, c.head) END
	  FROM (SELECT count(*) AS n, max(n) AS last, (SELECT n FROM event_heads WHERE tenant_id = $1) AS head
	          FROM came) c
	 WHERE tenant_id = $1 AND webhook_id = $2 AND EXISTS (SELECT FROM turn)`

// wantedSQL is the condition that a webhook w gets an event c.
const wantedSQL = `(c.topic = '` + webhookTopic + `' || w.id::text
		        OR NOT starts_with(c.topic, '` + webhookTopic + `') AND (w.types = '{}' OR c.type = ANY(w.types)))`

// firstSQL has the first delivery of each topic of the webhook $2 as a table, first. It goes from topic to topic, and
// does not read what waits behind.
const firstSQL = `
	WITH RECURSIVE first AS (
		(SELECT topic, n, attempts, next_try_at
		   FROM webhook_deliveries
		  WHERE tenant_id = $1 AND webhook_id = $2
		  ORDER BY topic, n
		  LIMIT 1)
		 UNION ALL
		SELECT d.*
		  FROM first f
		 CROSS JOIN LATERAL (
		       SELECT topic, n, attempts, next_try_at
		         FROM webhook_deliveries
		        WHERE tenant_id = $1 AND webhook_id = $2 AND topic > f.topic
		        ORDER BY topic, n
		        LIMIT 1) d
	)`

// nextDeliveriesSQL reads the events that are due, of each topic the first that waits.
const nextDeliveriesSQL = firstSQL + `
	SELECT e.id, e.n, e.type, e.at, e.topic, e.data
	  FROM first d
	  JOIN events e ON e.tenant_id = $1 AND e.n = d.n
	 WHERE d.next_try_at <= now()
	 ORDER BY d.attempts, d.n
	 LIMIT $3`

// delivery is how the delivery of an event went.
type delivery struct {
	N     int64
	Error string        // why it failed; "" if it was delivered
	Wait  time.Duration // that the receiver asks for before the next attempt; 0 for none
	Gone  bool          // the receiver wants nothing any more
}

// settleDeliveries records a round of deliveries, decides when the next attempts come, and disables a webhook that has
// got nothing for days or wants nothing. It reports whether that is so.
func (s store) settleDeliveries(ctx context.Context, tenant, id uuid.UUID, round []delivery) (
	disabled bool, err error,
) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (bool, error) {
		_, err := lockWebhook(ctx, tx, tenant, id) // before its deliveries, as whoever enables or deletes it does
		if errors.Is(err, session.ErrNotFound) {
			return true, nil // deleted meanwhile
		}
		if err != nil {
			return false, err
		}
		var delivered []int64
		last, gone := "", false
		for _, d := range round {
			if d.Error == "" {
				delivered = append(delivered, d.N)
				continue
			}
			last, gone = d.Error, gone || d.Gone
			if err := putOff(ctx, tx, tenant, id, d); err != nil {
				return false, err
			}
		}
		recovered, failures, err := countRound(ctx, tx, tenant, id, len(delivered), last)
		if err != nil {
			return false, err
		}
		if err := settle(ctx, tx, tenant, id, delivered, recovered); err != nil {
			return false, err
		}
		if len(delivered) == 0 && len(round) > 0 {
			if err := pause(ctx, tx, tenant, id, failures); err != nil {
				return false, err
			}
		}
		return disable(ctx, tx, tenant, id, gone, last)
	})
}

// putOff makes a delivery wait after a failure.
func putOff(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, d delivery) error {
	attempts, err := postgres.RowIn(ctx, tx, pgx.RowTo[int], `
		UPDATE webhook_deliveries
		   SET attempts = attempts + 1, error = $4
		 WHERE tenant_id = $1 AND webhook_id = $2 AND n = $3
		RETURNING attempts`, tenant, id, d.N, postgres.Text(d.Error))
	if errors.Is(err, session.ErrNotFound) {
		return nil // its session was erased
	}
	if err != nil {
		return err
	}
	return postgres.Exec(ctx, tx, `
		UPDATE webhook_deliveries
		   SET next_try_at = now() + $4::interval
		 WHERE tenant_id = $1 AND webhook_id = $2 AND n = $3`,
		tenant, id, d.N, max(deliveryWait(attempts), min(d.Wait, time.Hour)))
}

// countRound counts a round of a webhook. It reports whether the webhook got something after rounds in which it did
// not, and how many rounds in a row have failed.
func countRound(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, delivered int, last string) (
	recovered bool, failures int, err error,
) {
	err = tx.QueryRow(ctx, `
		UPDATE webhooks w
		   SET delivered = w.delivered + $3,
		       failures = CASE WHEN $3 > 0 THEN 0 ELSE w.failures + 1 END,
		       failing_since = CASE WHEN $3 = 0 THEN coalesce(w.failing_since, now()) END,
		       last_error = CASE WHEN $4 = '' THEN w.last_error ELSE $4 END,
		       last_failed_at = CASE WHEN $4 = '' THEN w.last_failed_at ELSE now() END,
		       last_delivered_at = CASE WHEN $3 > 0 THEN now() ELSE w.last_delivered_at END
		  FROM webhooks o
		 WHERE w.tenant_id = $1 AND w.id = $2 AND o.tenant_id = $1 AND o.id = $2
		RETURNING o.failures > 0 AND w.failures = 0, w.failures`, tenant, id, delivered, postgres.Text(last)).
		Scan(&recovered, &failures)
	return recovered, failures, postgres.NotFound(err)
}

// settle removes what was delivered, and says when the webhook is to be looked at again. If it has recovered, what
// failed before is tried at once.
func settle(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, delivered []int64, recovered bool) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		DELETE FROM webhook_deliveries
		 WHERE tenant_id = $1 AND webhook_id = $2 AND n = ANY($3)`, tenant, id, delivered)
	batch.Queue(`
		UPDATE webhook_deliveries d
		   SET next_try_at = now()
		  FROM webhook_turns t
		 WHERE d.tenant_id = $1 AND d.webhook_id = $2
		   AND t.tenant_id = $1 AND t.webhook_id = $2 AND t.failing AND $3`, tenant, id, recovered)
	batch.Queue(`
		UPDATE webhook_turns
		   SET failing = failing AND NOT $3, resume_at = '-infinity',
		       retry_at = CASE WHEN EXISTS (
		                            SELECT
		                              FROM webhook_deliveries
		                             WHERE tenant_id = $1 AND webhook_id = $2)
		                       THEN now() END -- returnTurn knows better
		 WHERE tenant_id = $1 AND webhook_id = $2`, tenant, id, len(delivered) > 0)
	return tx.SendBatch(ctx, batch).Close()
}

// pause makes a webhook wait as a whole if events of several topics fail and none was delivered: the receiver is down,
// and not only one session's event is refused.
func pause(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, failures int) error {
	return postgres.Exec(ctx, tx, `
		UPDATE webhook_turns
		   SET failing = true, resume_at = now() + $3::interval
		 WHERE tenant_id = $1 AND webhook_id = $2
		   AND (`+firstSQL+`
			SELECT count(*)
			  FROM first
			 WHERE attempts > 0) >= $4`,
		tenant, id, deliveryWait(failures), pausesFrom)
}

// disable disables a webhook that has got nothing for days, or whose receiver is gone, and tells so. What it has not
// got waits until it is enabled.
func disable(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, gone bool, last string) (disabled bool, err error) {
	reason := "nothing could be delivered for 3 days: " + last
	if gone {
		reason = "the receiver answers 410 Gone"
	}
	tag, err := tx.Exec(ctx, `
		WITH turn AS (
			UPDATE webhook_turns t
			   SET enabled = false
			  FROM webhooks w
			 WHERE t.tenant_id = $1 AND t.webhook_id = $2 AND w.tenant_id = $1 AND w.id = $2
			   AND w.disabled_at IS NULL
			   AND ($3 OR w.failures >= $5 AND w.failing_since < now() - $6::interval)
			RETURNING t.webhook_id
		)
		UPDATE webhooks
		   SET disabled_at = now(), disabled_reason = $4
		 WHERE tenant_id = $1 AND id = (SELECT webhook_id FROM turn)`,
		tenant, id, gone, postgres.Text(reason), disabledAfter, disabledWithin)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	data := map[string]any{"webhook": id, "reason": reason}
	return true, postgres.Emit(ctx, tx, tenant, postgres.Happening{
		Kind: session.EventWebhookDisabled, Topic: "webhooks", Data: data,
	})
}

// returnTurn completes the job of a webhook, forgets first deliveries whose events are gone, and says when the next one
// is due. The turn is free only with the job's end: one that is inserted before would be dropped as a duplicate.
func (s store) returnTurn(ctx context.Context, tenant, id uuid.UUID, job int64) error {
	return postgres.InTenant(ctx, s.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if err := s.Queue().Complete(ctx, tx, job); err != nil {
			return err
		}
		err := postgres.Exec(ctx, tx, firstSQL+`
			DELETE FROM webhook_deliveries
			 WHERE tenant_id = $1 AND webhook_id = $2
			   AND n IN (
			       SELECT n
			         FROM first d
			        WHERE NOT EXISTS (SELECT FROM events e WHERE e.tenant_id = $1 AND e.n = d.n))`, tenant, id)
		if err != nil {
			return err
		}
		return postgres.Exec(ctx, tx, firstSQL+`
			UPDATE webhook_turns
			   SET taken_at = NULL, retry_at = (SELECT min(next_try_at) FROM first)
			 WHERE tenant_id = $1 AND webhook_id = $2`, tenant, id)
	})
}

// dropDeliveries gives up what was not delivered before its event's time was over, and counts it. It locks the webhooks
// before their deliveries, as everybody does.
var dropDeliveries = postgres.Pruning{Kept: session.EventRetention, Limit: postgres.PruneBatch, SQL: `
	WITH locked AS (
		SELECT id
		  FROM webhooks
		 WHERE tenant_id = $1
		 ORDER BY id
		   FOR NO KEY UPDATE
	), gone AS (
		DELETE FROM webhook_deliveries d
		 USING events e
		 WHERE d.tenant_id = $1
		   AND d.webhook_id IN (SELECT id FROM locked)
		   AND e.tenant_id = $1
		   AND e.n = d.n
		   AND e.at < now() - $2::interval
		RETURNING d.webhook_id
	)
	UPDATE webhooks w
	   SET dropped = w.dropped + g.n
	  FROM (SELECT webhook_id, count(*) AS n FROM gone GROUP BY webhook_id) g
	 WHERE w.tenant_id = $1 AND w.id = g.webhook_id`}

// dropUnwritten counts what webhooks were to get of the oldest events, whose time is over, and of which no delivery was
// written: nobody looked at the webhook, which gets nothing, in time.
var dropUnwritten = postgres.Pruning{Kept: session.EventRetention, Limit: postgres.PruneBatch, SQL: `
	WITH locked AS (
		SELECT id
		  FROM webhooks
		 WHERE tenant_id = $1
		 ORDER BY id
		   FOR NO KEY UPDATE
	), lost AS (
		SELECT t.webhook_id, max(c.n) AS last, count(*) FILTER (WHERE ` + wantedSQL + `) AS n
		  FROM (` + postgres.OldestEvents + `) c
		  JOIN webhook_turns t ON t.tenant_id = $1 AND t.through_n < c.n
		  JOIN webhooks w ON w.tenant_id = $1 AND w.id = t.webhook_id
		 WHERE w.id IN (SELECT id FROM locked) AND c.at < now() - $2::interval
		 GROUP BY t.webhook_id
	), passed AS (
		UPDATE webhook_turns t
		   SET through_n = l.last
		  FROM lost l
		 WHERE t.tenant_id = $1 AND t.webhook_id = l.webhook_id
	)
	UPDATE webhooks w
	   SET dropped = w.dropped + l.n
	  FROM lost l
	 WHERE w.tenant_id = $1 AND w.id = l.webhook_id`}

// gauge counts the webhooks of all tenants by what they are to get.
func (s store) gauge(ctx context.Context) error {
	counted := map[string]*int{"disabled": new(int), "failing": new(int), "waiting": new(int), "idle": new(int)}
	err := s.Pool().QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE NOT t.enabled),
		       count(*) FILTER (WHERE t.enabled AND t.failing),
		       count(*) FILTER (WHERE t.enabled AND NOT t.failing AND waits),
		       count(*) FILTER (WHERE t.enabled AND NOT t.failing AND NOT waits)
		  FROM webhook_turns t
		  LEFT JOIN event_heads h ON h.tenant_id = t.tenant_id
		 CROSS JOIN LATERAL (SELECT t.retry_at IS NOT NULL OR coalesce(h.n, 0) > t.through_n AS waits) w`).
		Scan(counted["disabled"], counted["failing"], counted["waiting"], counted["idle"])
	if err != nil {
		return err
	}
	for state, n := range counted {
		webhooksGauge.WithLabelValues(state).Set(float64(*n))
	}
	return nil
}
