package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// store has the SQL of webhooks. Whoever changes a webhook and its deliveries locks the webhook first.
type store struct{ *postgres.Store }

const webhookColumns = `
	w.id, w.name, w.url, w.types, w.created_at, w.disabled_at, w.disabled_reason, w.failures, w.failing_since,
	w.last_error, w.last_failed_at, w.last_delivered_at, w.delivered, w.dropped,
	(SELECT count(*)
	   FROM webhook_deliveries d
	  WHERE d.tenant_id = w.tenant_id AND d.webhook_id = w.id) AS pending`

var scanWebhook = pgx.RowToStructByName[Webhook]

// create stores a webhook, which gets the events from now on. Errors: errTooMany.
func (s store) create(ctx context.Context, tenant uuid.UUID, w Webhook, secret Secret) (Webhook, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (made Webhook, err error) {
		if err := postgres.LockCount(ctx, tx, tenant, "webhooks"); err != nil {
			return made, err
		}
		there, err := postgres.RowIn(ctx, tx, pgx.RowTo[int], `
			SELECT count(*)
			  FROM webhooks
			 WHERE tenant_id = $1`, tenant)
		if err == nil && there >= maxWebhooks {
			err = errTooMany
		}
		if err != nil {
			return made, err
		}
		id := uuid.Must(uuid.NewV7())
		made, err = postgres.RowIn(ctx, tx, scanWebhook, `
			INSERT INTO webhooks AS w (tenant_id, id, name, url, types)
			VALUES ($1, $2, $3, $4, $5)
			RETURNING `+webhookColumns, tenant, id, w.Name, w.URL, orEmpty(w.Types))
		if err == nil {
			err = insertSecret(ctx, tx, tenant, id, secret)
		}
		if err == nil {
			err = postgres.Exec(ctx, tx, `
				INSERT INTO webhook_turns (tenant_id, webhook_id, through_n)
				VALUES ($1, $2, coalesce((SELECT n FROM event_heads WHERE tenant_id = $1), 0))`, tenant, id)
		}
		if err != nil {
			return made, err
		}
		return made, recordWebhook(ctx, tx, tenant, audit.WebhookCreate, made)
	})
}

// orEmpty returns types as the column has them: not NULL.
func orEmpty(types []session.EventType) []session.EventType {
	if types == nil {
		return []session.EventType{}
	}
	return types
}

// insertSecret stores what signs. It is never read by a login of the API.
func insertSecret(ctx context.Context, tx pgx.Tx, tenant, webhook uuid.UUID, secret Secret) error {
	return postgres.Exec(ctx, tx, `
		INSERT INTO webhook_secrets (tenant_id, webhook_id, id, secret)
		VALUES ($1, $2, $3, $4)`, tenant, webhook, uuid.Must(uuid.NewV7()), secret[:])
}

// recordWebhook records what was done to a webhook. The path of its URL may be a secret of the receiver's.
func recordWebhook(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action audit.Action, w Webhook) error {
	host := ""
	if u, err := url.Parse(w.URL); err == nil {
		host = u.Host
	}
	detail := map[string]any{"name": w.Name, "host": host, "types": w.Types}
	return postgres.Record(ctx, tx, tenant, action, audit.Webhook, w.ID.String(), detail)
}

// list returns a page of a tenant's webhooks, newest first.
func (s store) list(ctx context.Context, tenant uuid.UUID, page session.Page) ([]Webhook, error) {
	return postgres.QueryRows(ctx, s.Store, tenant, scanWebhook, `
		SELECT `+webhookColumns+`
		  FROM webhooks w
		 WHERE w.tenant_id = $1`+postgres.NewestFirst(`w.created_at`, `w.id`), postgres.PageArgs(tenant, page)...)
}

// read returns a webhook; ErrNotFound.
func (s store) read(ctx context.Context, tenant, id uuid.UUID) (Webhook, error) {
	return postgres.QueryRow(ctx, s.Store, tenant, scanWebhook, `
		SELECT `+webhookColumns+`
		  FROM webhooks w
		 WHERE w.tenant_id = $1 AND w.id = $2`, tenant, id)
}

// deliveries returns the events behind a number that a webhook has not got, in order; ErrNotFound.
func (s store) deliveries(ctx context.Context, tenant, id uuid.UUID, after int64, limit int) ([]Delivery, error) {
	return postgres.ReadTx(ctx, s.Store, tenant, func(tx pgx.Tx) ([]Delivery, error) {
		_, err := postgres.RowIn(ctx, tx, pgx.RowTo[uuid.UUID], `
			SELECT id
			  FROM webhooks
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err != nil {
			return nil, err
		}
		return postgres.RowsIn(ctx, tx, scanDelivery, `
			SELECT d.n, e.type, e.at, d.topic, d.attempts, d.next_try_at, d.error
			  FROM webhook_deliveries d
			  JOIN events e ON e.tenant_id = $1 AND e.n = d.n
			 WHERE d.tenant_id = $1 AND d.webhook_id = $2 AND d.n > $3
			 ORDER BY d.n
			 LIMIT $4`, tenant, id, after, limit)
	})
}

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var topic string
	err = row.Scan(&d.N, &d.Type, &d.At, &topic, &d.Attempts, &d.NextTryAt, &d.Error)
	d.Session = session.SessionOfTopic(topic)
	return d, err
}

// change changes a webhook; ErrNotFound. What waits already is sent to the URL that it has then.
func (s store) change(ctx context.Context, tenant, id uuid.UUID, c Change) (Webhook, error) {
	return s.update(ctx, tenant, id, audit.WebhookChange, `
		UPDATE webhooks w
		   SET name = coalesce($3, name), url = coalesce($4, url), types = coalesce($5, types)
		 WHERE tenant_id = $1 AND id = $2
		RETURNING `+webhookColumns, tenant, id, c.Name, c.URL, c.Types)
}

// update changes a webhook under its lock, and records that unless it is as it was.
func (s store) update(
	ctx context.Context, tenant, id uuid.UUID, action audit.Action, sql string, args ...any,
) (Webhook, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (Webhook, error) {
		old, err := lockWebhook(ctx, tx, tenant, id)
		if err != nil {
			return old, err
		}
		changed, err := postgres.RowIn(ctx, tx, scanWebhook, sql, args...)
		same := old.Name == changed.Name && old.URL == changed.URL && slices.Equal(old.Types, changed.Types) &&
			(old.DisabledAt == nil) == (changed.DisabledAt == nil)
		if err != nil || same {
			return changed, err
		}
		return changed, recordWebhook(ctx, tx, tenant, action, changed)
	})
}

func lockWebhook(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (Webhook, error) {
	return postgres.RowIn(ctx, tx, scanWebhook, `
		SELECT `+webhookColumns+`
		  FROM webhooks w
		 WHERE w.tenant_id = $1 AND w.id = $2
		   FOR NO KEY UPDATE`, tenant, id)
}

// enable lets a webhook get what it has not got, from where it stood; ErrNotFound.
func (s store) enable(ctx context.Context, tenant, id uuid.UUID) (Webhook, error) {
	return s.update(ctx, tenant, id, audit.WebhookEnable, `
		WITH turn AS (
			UPDATE webhook_turns
			   SET enabled = true, resume_at = '-infinity', retry_at = now(), failing = false
			 WHERE tenant_id = $1 AND webhook_id = $2
		), waiting AS (
			UPDATE webhook_deliveries
			   SET attempts = 0, next_try_at = now()
			 WHERE tenant_id = $1 AND webhook_id = $2
		)
		UPDATE webhooks w
		   SET disabled_at = NULL, disabled_reason = NULL, failures = 0, failing_since = NULL
		 WHERE tenant_id = $1 AND id = $2
		RETURNING `+webhookColumns, tenant, id)
}

// rotate gives a webhook another secret. The one of before signs, too, until the overlap is over; older ones end
// at once. ErrNotFound.
func (s store) rotate(
	ctx context.Context, tenant, id uuid.UUID, secret Secret, overlap time.Duration,
) (Webhook, error) {
	return postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (found Webhook, err error) {
		if found, err = lockWebhook(ctx, tx, tenant, id); err != nil {
			return found, err
		}
		err = postgres.Exec(ctx, tx, `
			WITH over AS (
				DELETE FROM webhook_secrets
				 WHERE tenant_id = $1 AND webhook_id = $2 AND expires_at IS NOT NULL
			)
			UPDATE webhook_secrets
			   SET expires_at = now() + $3::interval
			 WHERE tenant_id = $1 AND webhook_id = $2 AND expires_at IS NULL`, tenant, id, overlap)
		if err == nil {
			err = insertSecret(ctx, tx, tenant, id, secret)
		}
		if err != nil {
			return found, err
		}
		return found, recordWebhook(ctx, tx, tenant, audit.WebhookRotate, found)
	})
}

// delete deletes a webhook, and what it has not got; ErrNotFound.
func (s store) delete(ctx context.Context, tenant, id uuid.UUID) error {
	_, err := postgres.InTx(ctx, s.Store, tenant, func(tx pgx.Tx) (struct{}, error) {
		batch := &pgx.Batch{}
		batch.Queue(`SELECT FROM webhooks WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, id)
		for _, table := range []string{"webhook_turns", "webhook_deliveries", "webhook_secrets"} {
			batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND webhook_id = $2`, tenant, id)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return struct{}{}, err
		}
		gone, err := postgres.RowIn(ctx, tx, scanWebhook, `
			DELETE FROM webhooks w
			 WHERE tenant_id = $1 AND id = $2
			RETURNING `+webhookColumns, tenant, id)
		if errors.Is(err, session.ErrNotFound) {
			err = fmt.Errorf("webhook %s: %w", id, err)
		}
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, recordWebhook(ctx, tx, tenant, audit.WebhookDelete, gone)
	})
	return err
}

// test writes an event that one webhook alone gets; ErrNotFound, errDisabled.
func (s store) test(ctx context.Context, tenant, id uuid.UUID) error {
	return postgres.InTenant(ctx, s.Pool(), tenant, pgx.TxOptions{}, func(tx pgx.Tx) error {
		enabled, err := postgres.RowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT disabled_at IS NULL
			  FROM webhooks
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err == nil && !enabled {
			err = errDisabled
		}
		if err != nil {
			return err
		}
		topic := webhookTopic + id.String()
		return postgres.Emit(ctx, tx, tenant, postgres.Happening{
			Kind: session.EventWebhookTest, Topic: topic, Data: map[string]any{"webhook": id},
		})
	})
}

// webhookTopic is before the id of a webhook in the topic of the events that it alone gets.
const webhookTopic = "webhook/"
