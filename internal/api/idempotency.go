package api

import (
	"crypto/sha256"
	"io"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const idempotencyRetention = postgres.IdempotencyRetention

// idempotency is the request's Idempotency-Key, bare or in quotes, with the fingerprint of the request: method, path,
// sorted query and body as it is after decompression. Without the header it is nil.
func (x *exchange) idempotency(body []byte) (*session.Idempotency, error) {
	header := x.r.Header["Idempotency-Key"]
	if len(header) == 0 {
		return nil, nil
	}
	key := header[0]
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	if len(header) > 1 || !visible(key) {
		return nil, fail("invalid_idempotency_key", "send one Idempotency-Key of 1 to %d visible ASCII characters", session.MaxIdempotencyKey)
	}
	query := strings.Split(x.r.URL.RawQuery, "&")
	slices.Sort(query)
	h := sha256.New()
	for _, part := range []string{x.r.Method, x.r.URL.EscapedPath(), strings.Join(query, "&"), ""} {
		io.WriteString(h, part)
		h.Write([]byte{'\n'})
	}
	h.Write(body)
	return &session.Idempotency{Key: key, Route: x.r.Method + " " + x.route, Digest: [32]byte(h.Sum(nil))}, nil
}

func visible(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return 1 <= len(key) && len(key) <= session.MaxIdempotencyKey
}
