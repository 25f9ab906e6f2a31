package upload

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// handlers answer the requests about uploads.
type handlers struct {
	api    *feature.API
	places places
}

var errNone = request.Fail(request.NotFound, "there is no such session, or no such upload to it: one that does not "+
	"end expires after a day")

// routes returns the routes of uploads.
func routes(a *feature.API) []request.Route {
	write, h := request.Tenants(session.SessionsWrite), &handlers{api: a}
	const one = "/v1/sessions/:id/results/uploads/:upload"
	return []request.Route{
		write.Feed("/v1/sessions/:id/results", h.create, "tool", "call_id", "media_type", "sha256", "more"),
		write.Get(one, h.read).About("upload", errNone),
		write.Feed(one, h.resume, "offset", "more").About("upload", errNone),
		write.Delete(one, h.abandon).About("upload", errNone),
	}
}

// places counts the uploads that a process receives for each tenant.
type places struct {
	mu   sync.Mutex
	held map[uuid.UUID]int
}

// maxReceiving is how many uploads a process receives for a tenant at once: each holds a connection and some MiB.
const maxReceiving = 4

// take takes a place; ErrTooManyUploads.
func (p *places) take(tenant uuid.UUID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant] >= maxReceiving {
		return tooMany(tenantFull)
	}
	if p.held == nil {
		p.held = map[uuid.UUID]int{}
	}
	p.held[tenant]++
	return nil
}

func (p *places) leave(tenant uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// create handles POST /v1/sessions/{id}/results: the body is stored while it arrives.
func (h *handlers) create(req *request.Request) error {
	n := readNew(req)
	more := req.Query().Flag("more")
	if err := req.Err(); err != nil {
		return err
	}
	if err := h.places.take(req.Tenant); err != nil {
		req.Drain()
		return err
	}
	defer h.places.leave(req.Tenant)
	if err := h.api.Awake(req.Ctx, req.Address()); err != nil { // before the body is read
		req.Drain()
		return err
	}
	u, err := store{req.Store}.begin(req.Ctx, req.Address(), n)
	if err != nil {
		req.Drain()
		return err
	}
	return h.receive(req, &receiver{Upload: u, More: more})
}

// readNew reads what the query says of a result.
func readNew(req *request.Request) (n begun) {
	q := req.Query()
	n.Tool = labelIn(q, "tool", maxToolBytes)
	n.CallID = labelIn(q, "call_id", session.MaxCallIDBytes)
	n.MediaType = mediaTypeIn(q)
	if id := req.Idempotency(); id != nil {
		n.Key = id.Key
	}
	for _, given := range []struct {
		where string
		sum   []byte
	}{{"sha256", hexDigest(q)}, {"Repr-Digest", reprDigest(q, req.R.Header.Get("Repr-Digest"))}} {
		switch {
		case given.sum == nil:
		case n.SHA256 != nil && !bytes.Equal(n.SHA256, given.sum):
			q.Wrong(given.where, request.InvalidRequest, "is not the SHA-256 of the parameter sha256: send one")
		default:
			n.SHA256 = given.sum
		}
	}
	return n
}

// labelIn reads a parameter that is stored as it is.
func labelIn(q *request.Query, name string, limit int) string {
	text := q.Text(name, "")
	if len(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		q.Wrong(name, request.InvalidRequest, "must be UTF-8 of at most %d bytes without control characters", limit)
	}
	return text
}

// mediaTypeIn reads what the bytes are, by default text. Content-Type says nothing: clients set it by themselves.
func mediaTypeIn(q *request.Query) string {
	given := q.Text("media_type", "text/plain; charset=utf-8")
	kind, parameters, err := mime.ParseMediaType(given)
	if err != nil || len(given) > maxMediaTypeBytes || !strings.Contains(kind, "/") {
		q.Wrong("media_type", request.InvalidRequest, "must be a media type of at most %d bytes, such as text/plain, "+
			"application/json or image/png", maxMediaTypeBytes)
		return ""
	}
	return mime.FormatMediaType(kind, parameters)
}

func hexDigest(q *request.Query) []byte {
	text := q.Text("sha256", "")
	if text == "" {
		return nil
	}
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != 32 {
		q.Wrong("sha256", request.InvalidRequest, "must be a SHA-256 of 64 hexadecimal digits")
		return nil
	}
	return sum
}

// reprDigest returns the SHA-256 of a header as RFC 9530 has it; digests of other kinds are left out.
func reprDigest(q *request.Query, header string) []byte {
	for member := range strings.SplitSeq(header, ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(member), "sha-256=")
		if !ok {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
		if err == nil && len(sum) == 32 {
			return sum
		}
		q.Wrong("Repr-Digest", request.InvalidRequest, "must be sha-256=:…: with 32 bytes in base64, as in RFC 9530")
	}
	return nil
}

// resume handles POST /v1/sessions/{id}/results/uploads/{upload}: the next bytes, or the last.
func (h *handlers) resume(req *request.Request) error {
	q := req.Query()
	r := &receiver{Offset: q.Integer("offset", 0, maxBytes, 0), More: q.Flag("more")}
	if !q.Values.Has("offset") {
		q.Wrong("offset", request.InvalidRequest, "is missing: say at which byte of the result the body "+
			"begins; GET this upload to see how many are stored")
	}
	if err := req.Err(); err != nil {
		return err
	}
	if err := h.places.take(req.Tenant); err != nil {
		req.Drain()
		return err
	}
	defer h.places.leave(req.Tenant)
	err := h.api.Awake(req.Ctx, req.Address()) // before the body is read
	if err == nil {
		r.Upload, err = store{req.Store}.read(req.Ctx, req.Address(), req.PathID("upload"))
	}
	if err != nil {
		req.Drain()
		return err
	}
	return h.receive(req, r)
}

// receive writes the request's body to an upload, and answers with the state of the upload.
func (h *handlers) receive(req *request.Request, r *receiver) error {
	req.Ctx = req.Base // which takes as long as the body does
	r.Store = store{req.Store}
	r.At = req.Address()
	r.Stopping = h.api.Stopping
	replayed := r.Upload.Finished()
	req.W.Header().Set("Location", pathOf(r.At, r.Upload.ID))
	body, err := h.body(req, r)
	if err == nil {
		defer body.Close()
		r.Upload, err = r.run(req.Ctx, body)
	}
	if err != nil {
		req.W.Header().Set("Upload-Offset", strconv.FormatInt(offsetAfter(req, r, err), 10))
		req.Drain()
		return failureOf(err)
	}
	return h.answer(req, &r.Upload, replayed)
}

// body returns the body, unless its length says that it is too large.
func (h *handlers) body(req *request.Request, r *receiver) (io.ReadCloser, error) {
	plain := req.R.Header.Get("Content-Encoding") == ""
	continues := !r.Upload.Finished() && r.Offset == r.Upload.Offset
	if plain && continues && req.R.ContentLength > maxBytes-r.Offset {
		return nil, errors.Join(errTooLarge, store{req.Store}.abandon(req.Ctx, r.At, r.Upload.ID))
	}
	return req.Stream()
}

// offsetAfter returns how many bytes of an upload are stored after an error.
func offsetAfter(req *request.Request, r *receiver, err error) int64 {
	var wrong *offsetError
	if errors.As(err, &wrong) {
		return wrong.Right
	}
	if now, err := r.Store.read(req.Ctx, r.At, r.Upload.ID); err == nil {
		return now.Offset
	}
	return 0
}

// failureOf says what a caller can do after an error of an upload.
func failureOf(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return request.Fail("body_too_large", "a result has at most %d MiB, decompressed: nothing of this one is "+
			"kept; upload it in parts, as results of their own", maxBytes>>20)
	case errors.Is(err, errTooSlow):
		return request.Fail(request.RequestTimedOut, "the body arrives too slowly: what has arrived is stored, GET "+
			"the upload at Location and send the rest from its offset on")
	case errors.Is(err, errStopping):
		return request.Fail(request.Unavailable, "the process is stopping: what has arrived is stored, GET the "+
			"upload at Location and send the rest from its offset on")
	}
	return err
}

func pathOf(at session.Address, id uuid.UUID) string {
	return "/v1/sessions/" + url.PathEscape(at.ID) + "/results/uploads/" + id.String()
}

// answer answers a request that sent bytes: 202 while the upload waits for more, 201 with the result, or 200 if
// there was one already.
func (h *handlers) answer(req *request.Request, u *Upload, replayed bool) error {
	header := req.W.Header()
	header.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	answer, err := h.answerOf(req, u)
	switch {
	case err != nil:
		return err
	case answer.Result == nil:
		return req.JSON(http.StatusAccepted, answer)
	case replayed:
		header.Set("Idempotent-Replayed", "true")
		return req.JSON(http.StatusOK, answer.Result)
	}
	header.Set("Location", "/v1/sessions/"+url.PathEscape(req.Address().ID)+"/results/"+u.Ref)
	return req.JSON(http.StatusCreated, answer.Result)
}

// answerOf returns an upload as it is answered.
func (h *handlers) answerOf(req *request.Request, u *Upload) (*Answer, error) {
	answer := &Answer{
		ID: u.ID, State: Receiving, Offset: u.Offset, Tool: u.Tool, CallID: u.CallID,
		MediaType: u.MediaType, CreatedAt: u.CreatedAt, ExpiresAt: &u.ExpiresAt,
	}
	if u.Expected != nil {
		sum := hex.EncodeToString(u.Expected)
		answer.ExpectedSHA256 = &sum
	}
	if !u.Finished() {
		return answer, nil
	}
	ref, err := session.ParseResultRef(u.Ref)
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", u.ID, err)
	}
	found, _, err := store{req.Store}.OpenResult(req.Ctx, req.Address(), ref)
	if err != nil {
		return nil, err
	}
	answer.State, answer.ExpiresAt = Complete, nil
	answer.Result = &UploadedResult{Result: readback.AnswerOf(found), Upload: u.ID, Text: u.Text}
	return answer, nil
}

// read handles GET /v1/sessions/{id}/results/uploads/{upload}.
func (h *handlers) read(req *request.Request) error {
	u, err := store{req.Store}.read(req.Ctx, req.Address(), req.PathID("upload"))
	if err != nil {
		return err
	}
	req.W.Header().Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	answer, err := h.answerOf(req, &u)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, answer)
}

// abandon handles DELETE /v1/sessions/{id}/results/uploads/{upload}.
func (h *handlers) abandon(req *request.Request) error {
	at, id := req.Address(), req.PathID("upload")
	if err := (store{req.Store}).abandon(req.Ctx, at, id); err != nil {
		if errors.Is(err, errEnded) {
			req.W.Header().Set("Location", pathOf(at, id))
		}
		return err
	}
	req.W.WriteHeader(http.StatusNoContent)
	return nil
}
