package api

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/upload"
)

// uploadPlaces counts the uploads that a process receives for each tenant.
type uploadPlaces struct {
	mu   sync.Mutex
	held map[uuid.UUID]int
}

// maxReceiving is how many uploads a process receives for a tenant at once: each holds a connection and some MiB.
const maxReceiving = 4

// take takes a place; ErrTooManyUploads.
func (p *uploadPlaces) take(tenant uuid.UUID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant] >= maxReceiving {
		return request.Fail("too_many_uploads", "the tenant has %d uploads under way here, which are all that it may "+
			"have at once: send this one when one of them is done", maxReceiving)
	}
	if p.held == nil {
		p.held = map[uuid.UUID]int{}
	}
	p.held[tenant]++
	return nil
}

func (p *uploadPlaces) leave(tenant uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// createUpload handles POST /v1/sessions/{id}/results: the body is stored while it arrives.
func (s *Server) createUpload(req *request.Request) error {
	n := newUpload(req)
	more := req.Query().Flag("more")
	if err := req.Err(); err != nil {
		return err
	}
	if err := s.uploads.take(req.Tenant); err != nil {
		req.Drain()
		return err
	}
	defer s.uploads.leave(req.Tenant)
	if err := s.awake(req.Ctx, req.Address()); err != nil { // before the body is read
		req.Drain()
		return err
	}
	u, err := req.Store.BeginUpload(req.Ctx, req.Address(), n)
	if err != nil {
		req.Drain()
		return err
	}
	return s.receiveUpload(req, &upload.Receiver{Upload: u, More: more})
}

// newUpload reads what the query says of a result.
func newUpload(req *request.Request) (n session.NewUpload) {
	q := req.Query()
	n.Tool = labelIn(q, "tool", session.MaxToolBytes)
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
	if err != nil || len(given) > session.MaxMediaTypeBytes || !strings.Contains(kind, "/") {
		q.Wrong("media_type", request.InvalidRequest, "must be a media type of at most %d bytes, such as text/plain, "+
			"application/json or image/png", session.MaxMediaTypeBytes)
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

// resumeUpload handles POST /v1/sessions/{id}/results/uploads/{upload}: the next bytes, or the last.
func (s *Server) resumeUpload(req *request.Request) error {
	q := req.Query()
	r := &upload.Receiver{Offset: q.Integer("offset", 0, session.MaxUploadBytes, 0), More: q.Flag("more")}
	if !q.Values.Has("offset") {
		q.Wrong("offset", request.InvalidRequest, "is missing: say at which byte of the result the body "+
			"begins; GET this upload to see how many are stored")
	}
	if err := req.Err(); err != nil {
		return err
	}
	if err := s.uploads.take(req.Tenant); err != nil {
		req.Drain()
		return err
	}
	defer s.uploads.leave(req.Tenant)
	err := s.awake(req.Ctx, req.Address()) // before the body is read
	if err == nil {
		r.Upload, err = req.Store.Upload(req.Ctx, req.Address(), req.PathID("upload"))
	}
	if err != nil {
		req.Drain()
		return err
	}
	return s.receiveUpload(req, r)
}

// receiveUpload writes the request's body to an upload, and answers with the state of the upload.
func (s *Server) receiveUpload(req *request.Request, r *upload.Receiver) error {
	req.Ctx = req.Base // which takes as long as the body does
	r.Store = req.Store
	r.At = req.Address()
	r.Stopping = s.draining.Load
	replayed := r.Upload.Finished()
	req.W.Header().Set("Location", uploadPath(r.At, r.Upload.ID))
	body, err := s.uploadBody(req, r)
	if err == nil {
		defer body.Close()
		r.Upload, err = r.Run(req.Ctx, body)
	}
	if err != nil {
		req.W.Header().Set("Upload-Offset", strconv.FormatInt(offsetAfter(req, r, err), 10))
		req.Drain()
		return uploadFailure(err)
	}
	return s.answerUpload(req, &r.Upload, replayed)
}

// uploadBody returns the body, unless its length says that it is too large.
func (s *Server) uploadBody(req *request.Request, r *upload.Receiver) (io.ReadCloser, error) {
	plain := req.R.Header.Get("Content-Encoding") == ""
	continues := !r.Upload.Finished() && r.Offset == r.Upload.Offset
	if plain && continues && req.R.ContentLength > session.MaxUploadBytes-r.Offset {
		return nil, errors.Join(upload.ErrTooLarge, req.Store.AbandonUpload(req.Ctx, r.At, r.Upload.ID))
	}
	return req.Stream()
}

// offsetAfter returns how many bytes of an upload are stored after an error.
func offsetAfter(req *request.Request, r *upload.Receiver, err error) int64 {
	var wrong *session.OffsetError
	if errors.As(err, &wrong) {
		return wrong.Right
	}
	if now, err := r.Store.Upload(req.Ctx, r.At, r.Upload.ID); err == nil {
		return now.Offset
	}
	return 0
}

// uploadFailure says what a caller can do after an error of an upload.
func uploadFailure(err error) error {
	var digest *session.DigestError
	switch {
	case errors.As(err, &digest):
		return request.Fail("digest_mismatch", "%s", digest)
	case errors.Is(err, upload.ErrTooLarge):
		return request.Fail("body_too_large", "a result has at most %d MiB, decompressed: nothing of this one is "+
			"kept; upload it in parts, as results of their own", session.MaxUploadBytes>>20)
	case errors.Is(err, upload.ErrTooSlow):
		return request.Fail(request.RequestTimedOut, "the body arrives too slowly: what has arrived is stored, GET "+
			"the upload at Location and send the rest from its offset on")
	case errors.Is(err, upload.ErrStopping):
		return request.Fail(request.Unavailable, "the process is stopping: what has arrived is stored, GET the "+
			"upload at Location and send the rest from its offset on")
	}
	return err
}

func uploadPath(at session.Address, id uuid.UUID) string {
	return "/v1/sessions/" + escapeID(at.ID) + "/results/uploads/" + id.String()
}

// answerUpload answers a request that sent bytes: 202 while the upload waits for more, 201 with the result, or 200 if
// there was one already.
func (s *Server) answerUpload(req *request.Request, u *session.Upload, replayed bool) error {
	h := req.W.Header()
	h.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	answer, err := s.uploadOf(req, u)
	switch {
	case err != nil:
		return err
	case answer.Result == nil:
		return req.JSON(http.StatusAccepted, answer)
	case replayed:
		h.Set("Idempotent-Replayed", "true")
		return req.JSON(http.StatusOK, answer.Result)
	}
	h.Set("Location", "/v1/sessions/"+escapeID(req.Address().ID)+"/results/"+u.Ref)
	return req.JSON(http.StatusCreated, answer.Result)
}

// uploadOf returns an upload as it is answered.
func (s *Server) uploadOf(req *request.Request, u *session.Upload) (*protocol.Upload, error) {
	answer := &protocol.Upload{
		ID: u.ID, State: protocol.UploadReceiving, Offset: u.Offset, Tool: u.Tool, CallID: u.CallID,
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
	found, _, err := req.Store.OpenResult(req.Ctx, req.Address(), ref)
	if err != nil {
		return nil, err
	}
	answer.State, answer.ExpiresAt = protocol.UploadComplete, nil
	answer.Result = &protocol.UploadedResult{Result: answerOfResult(found), Upload: u.ID, Text: u.Text}
	return answer, nil
}

// readUpload handles GET /v1/sessions/{id}/results/uploads/{upload}.
func (s *Server) readUpload(req *request.Request) error {
	u, err := req.Store.Upload(req.Ctx, req.Address(), req.PathID("upload"))
	if err != nil {
		return err
	}
	req.W.Header().Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	answer, err := s.uploadOf(req, &u)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, answer)
}

// abandonUpload handles DELETE /v1/sessions/{id}/results/uploads/{upload}.
func (s *Server) abandonUpload(req *request.Request) error {
	at, id := req.Address(), req.PathID("upload")
	if err := req.Store.AbandonUpload(req.Ctx, at, id); err != nil {
		if errors.Is(err, session.ErrUploadEnded) {
			req.W.Header().Set("Location", uploadPath(at, id))
		}
		return err
	}
	req.W.WriteHeader(http.StatusNoContent)
	return nil
}
