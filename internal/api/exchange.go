package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/session"
)

// exchange is one request and its answer, as handlers see it.
type exchange struct {
	ctx    context.Context
	w      http.ResponseWriter
	raw    http.ResponseWriter // the server's own writer below w
	r      *http.Request
	param  func(name string) string // of the path, escaped
	route  string                   // the path with names for its parameters
	id     string                   // of the request
	tenant uuid.UUID                // whose key it came with
	key    [32]byte                 // the digest of that key

	openAI bool // errors are answered as OpenAI does

	session   string // id of the session that it is about, for the log
	problem   string // code of the error that was answered
	cause     error  // what the log should know and the client should not
	truncated bool   // an error came when a part of the answer was sent already
}

func newExchange(w http.ResponseWriter, r *http.Request) exchange {
	x := exchange{ctx: r.Context(), w: w, r: r, id: newRequestID()}
	h := w.Header()
	id := []string{x.id}
	h["X-Request-Id"], h["Request-Id"] = id, id
	h["X-Content-Type-Options"] = noSniff
	return x
}

var noSniff = []string{"nosniff"}

// newRequestID needs no secrecy, only to be unique.
func newRequestID() string {
	var b [16]byte
	for i, n := 0, [2]uint64{rand.Uint64(), rand.Uint64()}; i < 16; i++ {
		b[i] = byte(n[i/8] >> (8 * (i % 8)))
	}
	var text [4 + 2*len(b)]byte
	hex.Encode(text[copy(text[:], "req_"):], b[:])
	return string(text[:])
}

// address is the session that the path names.
func (x *exchange) address() (session.Address, error) {
	id, err := url.PathUnescape(x.param("id"))
	if err != nil || id == "" {
		return session.Address{}, session.ErrNotFound
	}
	x.session = id
	if problem := wrongID(id); problem != "" {
		return session.Address{}, session.Invalid("id", invalidRequest, "the session's id %s", problem)
	}
	return session.Address{Tenant: x.tenant, ID: id}, nil
}

// wrongID says what is wrong with a session's id, "" for nothing.
func wrongID(id string) string {
	switch {
	case id == "":
		return "is empty"
	case id == "." || id == "..":
		return "is a step in a path and not a name"
	case len(id) > session.MaxIDBytes:
		return fmt.Sprintf("has %d bytes: %d are the most", len(id), session.MaxIDBytes)
	case !utf8.ValidString(id):
		return "is not UTF-8"
	case strings.IndexByte(id, 0) >= 0:
		return "holds a NUL character"
	}
	return ""
}

// json answers with a value.
func (x *exchange) json(status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return x.bytes(status, jsonType, body)
}

var jsonType = []string{"application/json"}

// bytes answers with a body that is ready. Contents never get into caches that are shared.
func (x *exchange) bytes(status int, contentType []string, body []byte) error {
	h := x.w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if h["Cache-Control"] == nil {
		h["Cache-Control"] = noStore
	}
	x.w.WriteHeader(status)
	_, err := x.w.Write(body)
	return x.sent(err)
}

var noStore = []string{"private, no-store"}

// writeBy gives an answer that takes long more time than the server has for others.
func (x *exchange) writeBy(deadline time.Time) {
	// Writers that have no deadline do not need a later one.
	_ = http.NewResponseController(x.raw).SetWriteDeadline(deadline)
}

// errClientGone is the error of an answer that could not be sent whole.
var errClientGone = errors.New("the client is gone")

// sent notes that an answer could not be sent whole.
func (x *exchange) sent(err error) error {
	if err == nil {
		return nil
	}
	x.truncated = true
	return fmt.Errorf("%w: %w", errClientGone, err)
}

// replayed marks the answer of a request that came before under the same Idempotency-Key, and says of a new one until
// when it will be.
func (x *exchange) replayed(id *session.Idempotency, replayed bool) {
	switch {
	case replayed:
		x.w.Header().Set("Idempotent-Replayed", "true")
	case id != nil:
		x.w.Header().Set("Idempotency-Expires", time.Now().Add(idempotencyRetention).UTC().Format(http.TimeFormat))
	}
}
