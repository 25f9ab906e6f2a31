package admit

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/varve-dev/varve/internal/session"
)

// How long what the database said is believed: a tenant's quotas, and what is stored of it.
const (
	quotasAge = 10 * time.Second
	storedAge = 15 * time.Second
	readTime  = 30 * time.Second
)

// maxAccounts bounds the tenants that a process knows.
const maxAccounts = 10_000

// Book holds tenants to their quotas: it has an account of each. Requests and bytes are token buckets in the memory of
// each process, sessions and stored bytes what the database counted a while ago. What is read from the database is read
// again beside the requests, never before one, but for the first of a tenant.
type Book struct {
	quotas   ReadQuotas
	stored   ReadStored
	defaults session.Quotas
	accounts *lru.Cache[uuid.UUID, *Account]
}

// ReadQuotas reads the quotas of a tenant's row, or else the defaults, and ReadStored what the tenant has stored.
type (
	ReadQuotas func(ctx context.Context, tenant uuid.UUID, defaults session.Quotas) (session.Quotas, error)
	ReadStored func(ctx context.Context, tenant uuid.UUID) (session.Stored, error)
)

// NewBook returns a book of tenants that have the quotas of their rows, or else these.
func NewBook(quotas ReadQuotas, stored ReadStored, defaults session.Quotas) *Book {
	accounts, _ := lru.New[uuid.UUID, *Account](maxAccounts) // its only error is a size of 0
	return &Book{quotas: quotas, stored: stored, defaults: defaults, accounts: accounts}
}

// Account is what one tenant has used.
type Account struct {
	tenant uuid.UUID
	book   *Book

	mu       sync.Mutex
	quotas   session.Quotas
	requests *rate.Limiter // nil without the quota, as is bytes
	bytes    *rate.Limiter
	imports  int
	stored   session.Stored
	readAt   time.Time
	storedAt time.Time
	reading  bool
}

// Account returns the account of a tenant.
func (b *Book) Account(ctx context.Context, tenant uuid.UUID) *Account {
	a, ok := b.accounts.Get(tenant)
	if !ok {
		a = &Account{tenant: tenant, book: b, reading: true}
		if other, ok, _ := b.accounts.PeekOrAdd(tenant, a); ok {
			return other
		}
		a.read(ctx)
		return a
	}
	a.refresh(time.Now())
	return a
}

// refresh reads what has become old, beside the request.
func (a *Account) refresh(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reading || now.Sub(a.readAt) < quotasAge {
		return
	}
	a.reading = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), readTime)
		defer cancel()
		a.read(ctx)
	}()
}

// read reads the tenant's quotas, and what is stored if they bound it. What cannot be read stays as it was.
func (a *Account) read(ctx context.Context) {
	began := time.Now()
	quotas, err := a.book.quotas(ctx, a.tenant, a.book.defaults)
	a.mu.Lock()
	if err == nil {
		a.set(quotas)
	}
	counts := (a.quotas.Sessions > 0 || a.quotas.StoredBytes > 0) && time.Since(a.storedAt) >= storedAge
	a.mu.Unlock()
	var stored session.Stored
	if counts {
		began = time.Now()
		stored, err = a.book.stored(ctx, a.tenant)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if counts && err == nil {
		// What takes long to count is counted less often.
		a.stored, a.storedAt = stored, time.Now().Add(20*time.Since(began))
	}
	a.readAt, a.reading = time.Now(), false
}

const day = 24 * 60 * 60

// set makes the buckets of the quotas, full, unless they are the same as before.
func (a *Account) set(q session.Quotas) {
	if q == a.quotas {
		return
	}
	a.quotas = q
	a.requests, a.bytes = nil, nil
	if q.Requests > 0 {
		a.requests = rate.NewLimiter(rate.Limit(q.Requests), burst(q))
	}
	if q.BytesADay > 0 {
		a.bytes = rate.NewLimiter(rate.Limit(float64(q.BytesADay)/day), int(q.BytesADay))
	}
}

func burst(q session.Quotas) int {
	if q.Burst > 0 {
		return q.Burst
	}
	return max(1, int(math.Ceil(2*q.Requests)))
}

// ExceededError reports that a request would exceed a quota.
type ExceededError struct {
	Quota string // its member of session.Quotas in JSON
	Limit float64
	After time.Duration // when it may be sent again
}

func (e *ExceededError) Error() string {
	return fmt.Sprintf("the tenant's quota %s is %v, and is used up", e.Quota, e.Limit)
}

// Request takes a request with a body of this many bytes, -1 if that is not known, off the tenant's quotas, and writes
// into the header what is left.
//
// Errors: *ExceededError.
func (a *Account) Request(now time.Time, length int64, h http.Header) error {
	a.mu.Lock()
	q := a.quotas
	requests, bytes := a.requests, a.bytes
	a.mu.Unlock()
	if requests == nil && bytes == nil {
		return nil
	}
	var err error
	if requests != nil && !requests.AllowN(now, 1) {
		err = &ExceededError{"requests_per_second", q.Requests, until(requests, now, 1)}
	}
	need := float64(max(1, length))
	if bytes != nil && err == nil && bytes.TokensAt(now) < need {
		err = &ExceededError{"bytes_per_day", float64(q.BytesADay), until(bytes, now, need)}
	}
	describe(h, now, requests, bytes)
	return err
}

// until returns how long it takes until a bucket has so much.
func until(l *rate.Limiter, now time.Time, need float64) time.Duration {
	missing := min(need, float64(l.Burst())) - l.TokensAt(now)
	return time.Duration(math.Ceil(max(0, missing) / float64(l.Limit()) * float64(time.Second)))
}

// describe sets the fields of draft-ietf-httpapi-ratelimit-headers: the quotas with their windows, and of each what is
// left, and in how many seconds there is at least one more.
func describe(h http.Header, now time.Time, requests, bytes *rate.Limiter) {
	var policies, left []string
	for _, of := range []struct {
		name, unit string
		bucket     *rate.Limiter
	}{{"requests", "", requests}, {"bytes", `;qu="content-bytes"`, bytes}} {
		if of.bucket == nil {
			continue
		}
		window := math.Ceil(float64(of.bucket.Burst()) / float64(of.bucket.Limit()))
		policies = append(policies, fmt.Sprintf(`%q;q=%d;w=%.0f%s`, of.name, of.bucket.Burst(), window, of.unit))
		tokens := math.Floor(max(0, of.bucket.TokensAt(now)))
		next := math.Ceil(until(of.bucket, now, tokens+1).Seconds())
		left = append(left, fmt.Sprintf(`%q;r=%.0f;t=%.0f`, of.name, tokens, next))
	}
	h["RateLimit-Policy"], h["RateLimit"] = policies, left
}

// CountsBytes reports whether the tenant has a quota of bytes.
func (a *Account) CountsBytes() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes != nil
}

// Sent takes bytes of a body off the tenant's quota.
func (a *Account) Sent(n int) {
	a.mu.Lock()
	bytes := a.bytes
	a.mu.Unlock()
	if bytes == nil {
		return
	}
	for now := time.Now(); n > 0; n -= bytes.Burst() {
		bytes.ReserveN(now, min(n, bytes.Burst()))
	}
}

// storedAgain is when a request that would store more may be sent again.
const storedAgain = time.Minute

// Store returns an error if the tenant stores as much as it may; a new session must also be below its quota of those.
//
// Errors: *ExceededError.
func (a *Account) Store(newSession bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.quotas
	switch {
	case q.StoredBytes > 0 && a.stored.Bytes >= q.StoredBytes:
		return &ExceededError{"stored_bytes", float64(q.StoredBytes), storedAgain}
	case newSession && q.Sessions > 0 && a.stored.Sessions >= q.Sessions:
		return &ExceededError{"sessions", float64(q.Sessions), storedAgain}
	}
	return nil
}

// Import begins a request that sends lines of an import; its end is called when it has.
//
// Errors: *ExceededError.
func (a *Account) Import() (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.quotas.Imports > 0 && a.imports >= a.quotas.Imports {
		return nil, &ExceededError{"concurrent_imports", float64(a.quotas.Imports), time.Second}
	}
	a.imports++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.imports--
	}, nil
}

// Usage is what a tenant may use and has used. What is not bounded is not counted.
type Usage struct {
	Quotas session.Quotas
	session.Stored
	RequestsLeft, BytesLeft int64
	Imports                 int
}

// Usage returns the tenant's.
func (a *Account) Usage(now time.Time) Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := Usage{Quotas: a.quotas, Stored: a.stored, Imports: a.imports}
	if a.requests != nil {
		u.RequestsLeft = int64(max(0, a.requests.TokensAt(now)))
	}
	if a.bytes != nil {
		u.BytesLeft = int64(max(0, a.bytes.TokensAt(now)))
	}
	return u
}
