package postgres

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
	"github.com/varve-dev/varve/internal/session"
)

const webhookColumns = `
	w.id, w.name, w.url, w.types, w.created_at, w.disabled_at, w.disabled_reason, w.failures, w.failing_since,
	w.last_error, w.last_failed_at, w.last_delivered_at, w.delivered, w.dropped,
	(SELECT count(*)
	   FROM webhook_deliveries d
	  WHERE d.tenant_id = w.tenant_id AND d.webhook_id = w.id) AS pending`

var scanWebhook = pgx.RowToStructByName[session.Webhook]

// CreateWebhook stores a webhook, which gets the events from now on. Errors: ErrTooManyWebhooks.
func (s *Store) CreateWebhook(
	ctx context.Context, tenant uuid.UUID, w session.Webhook, secret session.WebhookSecret,
) (session.Webhook, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (made session.Webhook, err error) {
		if err := lockCount(ctx, tx, tenant, "webhooks"); err != nil {
			return made, err
		}
		there, err := rowIn(ctx, tx, pgx.RowTo[int], `
			SELECT count(*)
			  FROM webhooks
			 WHERE tenant_id = $1`, tenant)
		if err == nil && there >= session.MaxWebhooks {
			err = session.ErrTooManyWebhooks
		}
		if err != nil {
			return made, err
		}
		id := uuid.Must(uuid.NewV7())
		made, err = rowIn(ctx, tx, scanWebhook, `
			INSERT INTO webhooks AS w (tenant_id, id, name, url, types)
			VALUES ($1, $2, $3, $4, $5)
			RETURNING `+webhookColumns, tenant, id, w.Name, w.URL, typesOf(w.Types))
		if err == nil {
			err = insertSecret(ctx, tx, tenant, id, secret)
		}
		if err == nil {
			err = exec(ctx, tx, `
				INSERT INTO webhook_turns (tenant_id, webhook_id, through_n)
				VALUES ($1, $2, coalesce((SELECT n FROM event_heads WHERE tenant_id = $1), 0))`, tenant, id)
		}
		if err != nil {
			return made, err
		}
		return made, recordWebhook(ctx, tx, tenant, audit.WebhookCreate, made)
	})
}

// typesOf returns types as the column has them: not NULL.
func typesOf(types []session.EventType) []session.EventType {
	if types == nil {
		return []session.EventType{}
	}
	return types
}

// insertSecret stores what signs. It is never read by a login of the API.
func insertSecret(ctx context.Context, tx pgx.Tx, tenant, webhook uuid.UUID, secret session.WebhookSecret) error {
	return exec(ctx, tx, `
		INSERT INTO webhook_secrets (tenant_id, webhook_id, id, secret)
		VALUES ($1, $2, $3, $4)`, tenant, webhook, uuid.Must(uuid.NewV7()), secret[:])
}

// recordWebhook records what was done to a webhook. The path of its URL may be a secret of the receiver's.
func recordWebhook(ctx context.Context, tx pgx.Tx, tenant uuid.UUID, action audit.Action, w session.Webhook) error {
	host := ""
	if u, err := url.Parse(w.URL); err == nil {
		host = u.Host
	}
	return record(ctx, tx, tenant, deed{
		action: action, object: audit.Webhook, id: w.ID.String(),
		detail: about{"name": w.Name, "host": host, "types": w.Types},
	})
}

// Webhooks returns a page of a tenant's webhooks, newest first.
func (s *Store) Webhooks(ctx context.Context, tenant uuid.UUID, page session.Page) ([]session.Webhook, error) {
	return queryRows(ctx, s, tenant, scanWebhook, `
		SELECT `+webhookColumns+`
		  FROM webhooks w
		 WHERE w.tenant_id = $1`+newestFirst(`w.created_at`, `w.id`), pageArgs(tenant, page)...)
}

// Webhook returns a webhook; ErrNotFound.
func (s *Store) Webhook(ctx context.Context, tenant, id uuid.UUID) (session.Webhook, error) {
	return queryRow(ctx, s, tenant, scanWebhook, `
		SELECT `+webhookColumns+`
		  FROM webhooks w
		 WHERE w.tenant_id = $1 AND w.id = $2`, tenant, id)
}

// ChangeWebhook changes a webhook; ErrNotFound. What waits already is sent to the URL that it has then.
func (s *Store) ChangeWebhook(ctx context.Context, tenant, id uuid.UUID, c session.WebhookChange) (
	session.Webhook, error,
) {
	return s.changeWebhook(ctx, tenant, id, audit.WebhookChange, `
		UPDATE webhooks w
		   SET name = coalesce($3, name), url = coalesce($4, url), types = coalesce($5, types)
		 WHERE tenant_id = $1 AND id = $2
		RETURNING `+webhookColumns, tenant, id, c.Name, c.URL, c.Types)
}

// changeWebhook changes a webhook under its lock, and records that unless it is as it was.
func (s *Store) changeWebhook(
	ctx context.Context, tenant, id uuid.UUID, action audit.Action, sql string, args ...any,
) (session.Webhook, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (session.Webhook, error) {
		old, err := lockWebhook(ctx, tx, tenant, id)
		if err != nil {
			return old, err
		}
		changed, err := rowIn(ctx, tx, scanWebhook, sql, args...)
		same := old.Name == changed.Name && old.URL == changed.URL && slices.Equal(old.Types, changed.Types) &&
			(old.DisabledAt == nil) == (changed.DisabledAt == nil)
		if err != nil || same {
			return changed, err
		}
		return changed, recordWebhook(ctx, tx, tenant, action, changed)
	})
}

func lockWebhook(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID) (session.Webhook, error) {
	return rowIn(ctx, tx, scanWebhook, `
		SELECT `+webhookColumns+`
		  FROM webhooks w
		 WHERE w.tenant_id = $1 AND w.id = $2
		   FOR NO KEY UPDATE`, tenant, id)
}

// EnableWebhook lets a webhook get what it has not got, from where it stood; ErrNotFound.
func (s *Store) EnableWebhook(ctx context.Context, tenant, id uuid.UUID) (session.Webhook, error) {
	return s.changeWebhook(ctx, tenant, id, audit.WebhookEnable, `
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

// RotateWebhook gives a webhook another secret. The one of before signs, too, until the overlap is over; older ones end
// at once. ErrNotFound.
func (s *Store) RotateWebhook(
	ctx context.Context, tenant, id uuid.UUID, secret session.WebhookSecret, overlap time.Duration,
) (session.Webhook, error) {
	return inTx(ctx, s, tenant, func(tx pgx.Tx) (found session.Webhook, err error) {
		if found, err = lockWebhook(ctx, tx, tenant, id); err != nil {
			return found, err
		}
		err = exec(ctx, tx, `
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

// DeleteWebhook deletes a webhook, and what it has not got; ErrNotFound.
func (s *Store) DeleteWebhook(ctx context.Context, tenant, id uuid.UUID) error {
	_, err := inTx(ctx, s, tenant, func(tx pgx.Tx) (struct{}, error) {
		batch := &pgx.Batch{}
		batch.Queue(`SELECT FROM webhooks WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, id)
		for _, table := range []string{"webhook_turns", "webhook_deliveries", "webhook_secrets"} {
			batch.Queue(`DELETE FROM `+table+` WHERE tenant_id = $1 AND webhook_id = $2`, tenant, id)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return struct{}{}, err
		}
		gone, err := rowIn(ctx, tx, scanWebhook, `
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

// TestWebhook writes an event that one webhook alone gets; ErrNotFound, ErrWebhookDisabled.
func (s *Store) TestWebhook(ctx context.Context, tenant, id uuid.UUID) error {
	return s.inTenant(ctx, tenant, func(tx pgx.Tx) error {
		enabled, err := rowIn(ctx, tx, pgx.RowTo[bool], `
			SELECT disabled_at IS NULL
			  FROM webhooks
			 WHERE tenant_id = $1 AND id = $2`, tenant, id)
		if err == nil && !enabled {
			err = session.ErrWebhookDisabled
		}
		if err != nil {
			return err
		}
		return emit(ctx, tx, tenant, happening{
			kind: session.EventWebhookTest, topic: webhookTopic + id.String(), data: about{"webhook": id},
		})
	})
}

// webhookTopic is before the id of a webhook in the topic of the events that it alone gets.
const webhookTopic = "webhook/"
