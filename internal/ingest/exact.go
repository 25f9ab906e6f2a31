package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// Estimated is the tokenizer of callers that name none.
const Estimated = string(policy.Estimate)

// Counter counts appended messages with the tokenizers that policies name. It remembers for a few seconds which tenants
// have a policy that names an exact one.
type Counter struct {
	Store *postgres.Store
	CPU   *admit.Gate // that heavy counts wait for; nil admits all

	mu      sync.RWMutex
	tenants map[uuid.UUID]exactEntry
}

type exactEntry struct {
	exact bool
	until time.Time
}

const (
	// exactLifetime is how late the first policy of a tenant that names an exact tokenizer may be noticed.
	exactLifetime = 5 * time.Second

	// maxCachedTenants bounds the memory of the cache to about a megabyte.
	maxCachedTenants = 10_000
)

// Count sets the append's ExactTokens if the session's policy names an exact tokenizer. A reported usage is better than
// a count. If the policy names the formula of a system, it is how the messages are counted at all. For tenants without
// such a policy, which is nearly all, it reads nothing.
func (c *Counter) Count(ctx context.Context, a *session.Append) error {
	if exact, err := c.countsExactly(ctx, a.Session.Tenant); err != nil || !exact {
		return err
	}
	tokenizer, err := c.Store.Tokenizer(ctx, a.Session)
	if errors.Is(err, session.ErrNotFound) || err == nil && tokenizer == Estimated {
		return nil
	}
	if err != nil {
		return err
	}
	if by := policy.Tokenizer(tokenizer); by.IsFormula() {
		return recount(by, a)
	}
	if a.Usage != nil {
		return nil
	}
	count := func() error { return countAll(ctx, tokenizer, a) }
	return c.CPU.Do(ctx, a.Session.Tenant, admit.HeavyCount(size(a)), count)
}

// countAll sets the append's ExactTokens by an exact tokenizer, unless its texts are too long for that.
func countAll(ctx context.Context, tokenizer string, a *session.Append) error {
	var total int64
	exact := NewExact(ctx, tokenizer)
	for i := range a.Messages {
		found, err := exact.Message(a.Format, a.Messages[i].Body)
		if errors.Is(err, ErrTooLong) {
			return nil // the estimate stands, as for a message whose tokenizer is not known
		}
		if err != nil {
			return err
		}
		total += int64(found.Tokens)
	}
	a.ExactTokens = &total
	return nil
}

func size(a *session.Append) (bytes int) {
	for i := range a.Messages {
		bytes += len(a.Messages[i].Body)
	}
	return bytes
}

// ErrTooLong reports that a text is longer than what is counted exactly at once.
var ErrTooLong = fmt.Errorf("the texts have more than the %d MiB that are counted exactly at once",
	tokens.MaxExact>>20)

// Exact counts the texts of a request exactly, up to tokens.MaxExact bytes of them, until its context ends.
type Exact struct {
	ctx       context.Context // of the request, as long as which an Exact lives
	tokenizer string
	left      int
}

// NewExact returns a counter for one request.
func NewExact(ctx context.Context, tokenizer string) *Exact {
	return &Exact{ctx: ctx, tokenizer: tokenizer, left: tokens.MaxExact}
}

// Text counts a text.
//
// Errors: ErrTooLong, the context's.
func (e *Exact) Text(text string) (int, error) {
	if e.left -= len(text); e.left < 0 {
		return 0, ErrTooLong
	}
	return tokens.Count(e.ctx, e.tokenizer, text)
}

// Message inspects a message, and counts its texts exactly. Its errors are those of Text and of wire.Inspect.
func (e *Exact) Message(format session.Format, body []byte) (wire.Facts, error) {
	return wire.Count(format, body, e.Text)
}

// recount counts the messages of an append by the formula of a system.
func recount(by policy.Tokenizer, a *session.Append) error {
	counts := policy.Policy{Tokens: policy.Tokens{Tokenizer: by}}
	for i := range a.Messages {
		m := &a.Messages[i]
		found, err := wire.Inspect(a.Format, m.Body)
		if err != nil {
			return err
		}
		compact.Recount(&counts, a.Format, m.Body, &found)
		m.Tokens = found.Tokens
	}
	return nil
}

// countsExactly reports whether a policy of the tenant names an exact tokenizer.
func (c *Counter) countsExactly(ctx context.Context, tenant uuid.UUID) (bool, error) {
	now := time.Now()
	c.mu.RLock()
	known := c.tenants[tenant]
	c.mu.RUnlock()
	if now.Before(known.until) {
		return known.exact, nil
	}
	exact, err := c.Store.CountsExactly(ctx, tenant)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil || len(c.tenants) >= maxCachedTenants {
		c.tenants = map[uuid.UUID]exactEntry{}
	}
	c.tenants[tenant] = exactEntry{exact: exact, until: now.Add(exactLifetime)}
	return exact, nil
}
