package request

import (
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Idempotency returns the request's Idempotency-Key, bare or in quotes, with the fingerprint of the request: method,
// path, sorted query, and the body after decompression if it was read. It returns nil without the header.
func (req *Request) Idempotency() *session.Idempotency {
	header := req.R.Header["Idempotency-Key"]
	if req.key != nil || len(header) == 0 || req.Err() != nil {
		return req.key
	}
	key := header[0]
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	if len(header) > 1 || !isVisible(key) {
		req.Fail(Fail("invalid_idempotency_key", "send one Idempotency-Key of 1 to %d visible ASCII characters",
			session.MaxIdempotencyKey))
		return nil
	}
	req.key = &session.Idempotency{Key: key, Route: req.R.Method + " " + req.Route, Digest: req.digest()}
	return req.key
}

func (req *Request) digest() [32]byte {
	query := strings.Split(req.R.URL.RawQuery, "&")
	slices.Sort(query)
	h := sha256.New()
	for _, part := range []string{req.R.Method, req.R.URL.EscapedPath(), strings.Join(query, "&"), ""} {
		io.WriteString(h, part)
		h.Write([]byte{'\n'})
	}
	if req.body != nil {
		h.Write(req.body.B)
	}
	return [32]byte(h.Sum(nil))
}

func isVisible(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return 1 <= len(key) && len(key) <= session.MaxIdempotencyKey
}

// Replayed sets the headers of a request with an Idempotency-Key: whether its answer is that of an earlier request, or
// until when a repetition gets the same answer.
func (req *Request) Replayed(replayed bool) {
	switch {
	case replayed:
		req.W.Header().Set("Idempotent-Replayed", "true")
	case req.key != nil:
		expires := time.Now().Add(postgres.IdempotencyRetention).UTC()
		req.W.Header().Set("Idempotency-Expires", expires.Format(http.TimeFormat))
	}
}
