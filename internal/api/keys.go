package api

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/time/rate"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// keyLifetime is how long a key is accepted after the database confirmed it, and so how late a revocation can be.
const keyLifetime = 2 * time.Second

// keyCache remembers the digests of keys and tokens that the database confirmed, whom they let in, and until when it
// need not be asked again. A digest covers the whole key, its tenant included, and cannot be aimed at an entry byte
// by byte.
type keyCache struct {
	mu    sync.RWMutex
	known map[[32]byte]knownKey
}

type knownKey struct {
	caller session.Caller
	until  time.Time
}

// maxCachedKeys bounds the memory of the cache to some megabytes.
const maxCachedKeys = 10_000

// get returns whom a key lets in that need not be looked up.
func (c *keyCache) get(digest [32]byte, now time.Time) (session.Caller, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	k := c.known[digest]
	return k.caller, now.Before(k.until)
}

// knows reports whether a key was confirmed at some time, and not refused since.
func (c *keyCache) knows(digest [32]byte) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, known := c.known[digest]
	return known
}

// add remembers a key from the time of the database read.
func (c *keyCache) add(digest [32]byte, caller session.Caller, asked time.Time, lifetime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxCachedKeys {
		c.known = map[[32]byte]knownKey{}
	}
	c.known[digest] = knownKey{caller, asked.Add(lifetime)}
}

func (c *keyCache) forget(digest [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, digest)
}

// What an address may send of keys that do not exist: the number at once, and the number each second.
const (
	unknownBurst = 40
	unknownRate  = 10
)

// refusedFor is how long a key that does not exist is refused without asking again, and so how late a key can be that
// was used before it was made.
const refusedFor = time.Second

// maxUnknownKeys bounds what is remembered of addresses and of keys that do not exist.
const maxUnknownKeys = 10_000

// unknownKeys remembers keys that do not exist and the addresses that sent them. Make it with newUnknownKeys.
type unknownKeys struct {
	addresses *lru.Cache[netip.Prefix, *rate.Limiter]
	refused   *lru.Cache[[32]byte, time.Time]
}

func newUnknownKeys() unknownKeys {
	addresses, _ := lru.New[netip.Prefix, *rate.Limiter](maxUnknownKeys) // the only error of these is a size of 0
	refused, _ := lru.New[[32]byte, time.Time](maxUnknownKeys)
	return unknownKeys{addresses, refused}
}

var refusedKeys = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "varve_keys_refused_total",
	Help: "Keys and tokens that were refused, by why: unknown, remembered as unknown, or an address that sends many.",
}, []string{"why"})

var errUnknownKeys = &request.Failure{
	Code: rateLimited, RetryAfter: time.Second,
	Detail: "this address has sent many keys that do not exist: check the key, then try again after Retry-After",
}

// rateLimited is the code of requests that come too often.
const rateLimited = "rate_limited"

// admit returns why a key is refused without asking the database.
func (s *unknownKeys) admit(address string, digest [32]byte, now time.Time) error {
	if until, ok := s.refused.Get(digest); ok && now.Before(until) {
		refusedKeys.WithLabelValues("remembered").Inc()
		return session.ErrUnauthorized
	}
	limit, ok := s.addresses.Get(networkOf(address))
	if ok && limit.TokensAt(now) < 1 {
		refusedKeys.WithLabelValues("address").Inc()
		return errUnknownKeys
	}
	return nil
}

// remember records that an address has sent a key that does not exist.
func (s *unknownKeys) remember(address string, digest [32]byte, now time.Time) {
	refusedKeys.WithLabelValues("unknown").Inc()
	s.refused.Add(digest, now.Add(refusedFor))
	network := networkOf(address)
	limit := rate.NewLimiter(unknownRate, unknownBurst)
	if found, ok, _ := s.addresses.PeekOrAdd(network, limit); ok {
		limit = found
	}
	limit.AllowN(now, 1)
}

// networkOf returns the network that one sender has: an address of IPv4, 64 bits of IPv6.
func networkOf(address string) netip.Prefix {
	at, _ := netip.ParseAddrPort(address) // what does not parse is one network
	bits := 32
	if at.Addr().Unmap().Is6() {
		bits = 64
	}
	network, _ := at.Addr().Unmap().Prefix(bits)
	return network
}
