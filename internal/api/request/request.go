// Package request is the kit under the handlers of the HTTP API: one request and its answer, with readers that report
// every problem of a query or a body at once.
//
// Start at Request. Its readers (Query, Address, PathID, Body, EmptyBody, Idempotency) read a part once, and keep what
// is wrong with it for Err. A route calls those that it needs before its handler, which gets the same values from them
// again, makes its call and answers (JSON, Bytes, AnswerFound, AnswerChanged, AnswerList). Document reads JSON bodies
// of our own shape, Failure is an error with its code. The package owns no tables and knows no route.
package request

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
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// Request is one request and its answer, as handlers see it. It is used by one goroutine.
type Request struct {
	Ctx       context.Context // ends with the time that the request may take
	Base      context.Context // ends only with the request
	W         http.ResponseWriter
	Raw       http.ResponseWriter // the server's own writer below W
	R         *http.Request
	Param     func(name string) string // returns a parameter of the path, escaped
	Begun     func() bool              // reports whether a part of the answer is sent
	Route     string                   // the path with names for its parameters
	ID        string                   // of the request
	Tenant    uuid.UUID                // the owner of the key or session token that authorized the request
	KeyDigest [32]byte                 // the digest of that key
	Caller    session.Caller           // who holds it, and what they may do
	Actor     audit.Actor              // the same as the audit trail names them; the contexts carry it

	Store  *postgres.Store // in the scope of the route
	Memory *admit.Gate     // that large requests draw from
	CPU    *admit.Gate     // the processors that heavy work shares

	OpenAI bool // queries are read and errors are answered as OpenAI's API does

	// For the log.
	SessionID   string // the session that the request is about
	ProblemCode string // the code of the error that was answered
	Cause       error  // what the client must not see
	Truncated   bool   // an error came when a part of the answer was sent already

	err     error // the first error of a reader; those after it do nothing
	query   Query
	at      session.Address
	body    *Buffer
	key     *session.Idempotency
	buffers *Buffer      // freed with the request
	held    []admit.Turn // of what was admitted, with the request
}

// New returns a request with an id, which the answer's headers carry.
func New(w http.ResponseWriter, r *http.Request) Request {
	req := Request{Ctx: r.Context(), Base: r.Context(), W: w, R: r, ID: newID()}
	h := w.Header()
	id := []string{req.ID}
	h["X-Request-Id"], h["Request-Id"] = id, id
	h["X-Content-Type-Options"] = noSniff
	return req
}

var noSniff = []string{"nosniff"}

// newID needs no secrecy, it must only be unique.
func newID() string {
	var b [16]byte
	for i, n := 0, [2]uint64{rand.Uint64(), rand.Uint64()}; i < 16; i++ {
		b[i] = byte(n[i/8] >> (8 * (i % 8)))
	}
	var text [4 + 2*len(b)]byte
	hex.Encode(text[copy(text[:], "req_"):], b[:])
	return string(text[:])
}

// Err returns what is wrong with the request as far as it was read: all problems of its query, or else the first error.
func (req *Request) Err() error {
	if err := req.query.Err(); err != nil {
		return err
	}
	return req.err
}

// Fail records an error of a reader, unless there is one already.
func (req *Request) Fail(err error) {
	if req.err == nil {
		req.err = err
	}
}

// Admit waits until the process has this number of bytes of memory for the request, which keeps them until it ends.
//
// Errors: those of admit.Gate.Acquire.
func (req *Request) Admit(weight int64) error {
	turn, err := req.Memory.Acquire(req.Ctx, req.Tenant, weight)
	if err == nil {
		req.held = append(req.held, turn)
	}
	return err
}

// Heavy does work on a number of bytes with a share of the processors. Light work does not wait. The work must not
// write to the client, who may read slowly, and must not be heavy work itself: it would wait for its own share.
//
// Errors: those of admit.Gate.Acquire, and of work.
func (req *Request) Heavy(bytes int64, work func() error) error {
	return req.CPU.Do(req.Ctx, req.Tenant, admit.HeavyWork(bytes), work)
}

// Processors returns what the steps of work that has begun take turns at. They are not refused, which would throw away
// what was done.
func (req *Request) Processors() admit.Processors {
	return admit.Processors{Gate: req.CPU, Tenant: req.Tenant}
}

// Free gives the request's buffers and memory to other requests. Nothing may point into them any more.
func (req *Request) Free() {
	defer func() {
		for i := range req.held {
			req.held[i].Done()
		}
		req.held = nil
	}()
	for b := req.buffers; b != nil; {
		next := b.next
		b.Free()
		b = next
	}
	req.buffers = nil
}

// Address returns the session that the path names.
func (req *Request) Address() session.Address {
	if req.at.ID != "" || req.Err() != nil {
		return req.at
	}
	id, err := url.PathUnescape(req.Param("id"))
	if err != nil || id == "" {
		req.Fail(session.ErrNotFound)
		return session.Address{}
	}
	req.SessionID = id
	if problem := session.CheckID(id); problem != "" {
		req.Fail(session.Invalid("id", InvalidRequest, "the session's id %s", problem))
	}
	req.at = session.Address{Tenant: req.Tenant, ID: id}
	return req.at
}

// PathID returns a parameter of the path that must be a UUID. No other text is found.
func (req *Request) PathID(name string) uuid.UUID {
	id, err := uuid.Parse(req.Param(name))
	if err != nil {
		req.Fail(session.ErrNotFound)
	}
	return id
}

// JSON answers with a value.
func (req *Request) JSON(status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return req.Bytes(status, JSONType, body)
}

// AnswerFound answers with what was found, or returns the error of the search.
func AnswerFound[T, A any](req *Request, found T, err error, answer func(T) A) error {
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, answer(found))
}

// AnswerWork answers with work that may be in progress: 202 until it has ended, with where to ask for it again.
func AnswerWork(req *Request, ended bool, location string, work any) error {
	if ended {
		return req.JSON(http.StatusOK, work)
	}
	req.W.Header().Set("Location", location)
	req.W.Header()["Retry-After"] = RetryAfter
	return req.JSON(http.StatusAccepted, work)
}

// AsIs answers with a domain type that is the answer as it stands.
func AsIs[T any](found T) T { return found }

// AnswerChanged answers with what was changed, now or by an earlier request with the same Idempotency-Key, or returns
// the error of the change.
func AnswerChanged[T, A any](req *Request, changed T, replayed bool, err error, answer func(T) A) error {
	if err != nil {
		return err
	}
	req.Replayed(replayed)
	return req.JSON(http.StatusOK, answer(changed))
}

// JSONType is the content type of JSON.
var JSONType = []string{"application/json"}

// Bytes answers with a body. Contents must not get into shared caches.
func (req *Request) Bytes(status int, contentType []string, body []byte) error {
	return req.Pieces(status, contentType, body)
}

// Pieces answers with a body in pieces, which it does not put together: a large one would be copied once more.
func (req *Request) Pieces(status int, contentType []string, pieces ...[]byte) (err error) {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	h := req.W.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(size)}
	if h["Cache-Control"] == nil {
		h["Cache-Control"] = NoStore
	}
	req.W.WriteHeader(status)
	for _, piece := range pieces {
		if err == nil {
			_, err = req.W.Write(piece)
		}
	}
	return req.Sent(err)
}

// NoStore is the Cache-Control of answers that hold contents.
var NoStore = []string{"private, no-store"}

// RetryAfter is the Retry-After of answers to be asked for again soon.
var RetryAfter = []string{"1"}

// WriteBy gives an answer that takes long a later deadline than the server's.
func (req *Request) WriteBy(deadline time.Time) {
	// Writers without a deadline do not need a later one.
	_ = http.NewResponseController(req.Raw).SetWriteDeadline(deadline)
}

// ErrClientGone is the error of an answer that could not be sent whole.
var ErrClientGone = errors.New("the client is gone")

// Sent records that an answer could not be sent whole, if err is not nil.
func (req *Request) Sent(err error) error {
	if err == nil {
		return nil
	}
	req.Truncated = true
	return fmt.Errorf("%w: %w", ErrClientGone, err)
}

// AnswerGone answers that something is deleted, or returns the error of the deletion.
func AnswerGone(req *Request, err error) error {
	if err != nil {
		return err
	}
	req.W.WriteHeader(http.StatusNoContent)
	return nil
}
