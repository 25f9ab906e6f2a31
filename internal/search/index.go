package search

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// The bounds of what is indexed in one transaction.
const (
	stepMessages = 200
	stepBytes    = 2 << 20
	stepSessions = 50 // that are looked up at once
)

// indexer indexes what was stored.
type indexer struct {
	store store
	rest  time.Duration // how long a session has stored nothing before it is indexed
	log   *slog.Logger
}

// indexedPassage is a passage to index.
type indexedPassage struct {
	Seq   int64
	Bytes int
	Words []string
}

// tenant indexes a tenant's messages and uploaded results until all are indexed that it is time for, which it reports,
// or a time has come. A result that cannot be read now keeps nothing else from being indexed.
func (x *indexer) tenant(ctx context.Context, tenant uuid.UUID, until time.Time) (done bool, err error) {
	for time.Now().Before(until) {
		steps, err := x.store.nextToIndex(ctx, tenant, x.rest, stepSessions)
		if err != nil || len(steps) == 0 {
			return err == nil, err
		}
		var unread []error
		for _, step := range steps {
			unread = append(unread, unlessGone(x.uploads(ctx, tenant, step)))
			if err := unlessGone(x.step(ctx, tenant, step)); err != nil {
				return false, err
			}
			if !time.Now().Before(until) {
				break
			}
		}
		if err := errors.Join(unread...); err != nil {
			return false, err
		}
	}
	return false, nil
}

// unlessGone returns an error but for that of a session that is gone.
func unlessGone(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// step indexes the next messages of a session; ErrNotFound if it is gone.
func (x *indexer) step(ctx context.Context, tenant uuid.UUID, step indexStep) error {
	messages, last, err := x.messages(ctx, tenant, step, stepMessages)
	if errors.Is(err, session.ErrDamaged) { // one of them is, and the others are indexed one by one
		messages, last, err = x.messages(ctx, tenant, step, 1)
	}
	if errors.Is(err, session.ErrDamaged) {
		x.log.WarnContext(ctx, "a damaged message is not indexed", "tenant", tenant, "session_key", step.Key,
			"error", err)
		return x.store.putIndex(ctx, tenant, step, step.After+1, 1, nil)
	}
	if err != nil {
		return err
	}
	inPart := 0
	var passages []passage
	for i := range messages {
		list, whole, err := passagesOf(&messages[i], step.Rules)
		if err != nil {
			x.log.WarnContext(ctx, "a message has no text to index", "tenant", tenant, "session_key", step.Key,
				"seq", messages[i].Seq, "error", err)
		}
		if !whole {
			inPart++
		}
		passages = append(passages, list...)
	}
	indexed, err := x.store.withWords(ctx, tenant, step.Rules, passages)
	if err != nil {
		return err
	}
	return x.store.putIndex(ctx, tenant, step, last, inPart, blocksOf(tenant, indexed))
}

// messages reads the next messages of a session, and returns up to which seq there are no others.
func (x *indexer) messages(
	ctx context.Context, tenant uuid.UUID, step indexStep, limit int,
) (list []session.Message, last int64, err error) {
	page := postgres.Range{After: step.After, Limit: limit, Bytes: stepBytes}
	found, list, err := x.store.Messages(ctx, session.Address{Tenant: tenant, ID: step.Session}, page)
	if err == nil && found.Key != step.Key {
		err = session.ErrNotFound // the id is another session's now
	}
	if err != nil {
		return nil, 0, err
	}
	if len(list) == 0 {
		return nil, found.LastSeq, nil
	}
	return list, list[len(list)-1].Seq, nil
}
