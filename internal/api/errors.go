package api

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/varve-dev/varve/internal/api/openai"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

//go:embed errors.json
var statusTable []byte

// statuses is the closed list of error codes with their statuses; docs/errors.md has the same.
var statuses = embeddedStatuses()

func embeddedStatuses() (codes map[string]int) {
	if err := json.Unmarshal(statusTable, &codes); err != nil {
		panic(fmt.Errorf("errors.json: %w", err))
	}
	return codes
}

// problemCodes are the codes that a member of errors may have beside those above: what a policy does wrong.
var problemCodes = []string{policy.WrongType, policy.OutOfRange, policy.InvalidText, policy.UnknownValue,
	policy.InvalidTemplate, policy.InvalidPattern, policy.Contradiction}

// sentinels map domain errors to codes and to what the caller can do. A detail of "" is the error's own text.
var sentinels = []struct {
	err    error
	code   string
	detail string
}{
	{session.ErrUnauthorized, "unauthorized", "send a live key or session token as \"Authorization: Bearer vk_…\" " +
		"or st_…; varve keys create makes a key"},
	{session.ErrForbidden, "forbidden", "the key is of another tenant: leave tenant out, or send a key of that tenant"},
	{session.ErrViewLost, "checkpoint_pruned", ""},
	{session.ErrPruned, "checkpoint_pruned", fmt.Sprintf("the checkpoint's body is not kept any more: the last %d "+
		"have theirs, and the one that was restored last; its statistics and its manifest are there, and GET "+
		"/v1/sessions/{id}/messages has every message", postgres.KeptCheckpoints)},
	{session.ErrNotFound, "not_found", "there is no such session: PUT /v1/sessions/{id} makes one"},
	{session.ErrClientIDReused, "client_id_reused", ""},
	{session.ErrIdempotencyReused, "idempotency_key_reused", "the Idempotency-Key was used for another request: " +
		"take a new one for this request, or send the first one again as it was"},
	{session.ErrTooManyMessages, "session_full", fmt.Sprintf("the session has no room for these messages: it takes "+
		"%d messages, and %d MiB of messages that no compaction covers yet; begin a new session, or compact this "+
		"one", session.MaxSessionMessages, session.MaxTailBytes>>20)},
	{session.ErrLogTooLarge, request.InvalidRequest, "the session's log is too large to be taken as a whole: leave " +
		"from, policy, or format beside view=full out, or begin a new session"},
	{session.ErrArchived, "session_archived", "the session is archived: POST /v1/sessions/{id}/unarchive restores " +
		"it, and GET /v1/sessions/{id}/archive says how far that is"},
	{session.ErrThawing, "session_thawing", "the session is cold: it slept, lies in the result store, and is not " +
		"back yet, because it is large or the store does not answer: nothing was done; try again after Retry-After"},
	{session.ErrRestoring, "session_archived", "the session is being restored from its archive: GET " +
		"/v1/sessions/{id}/archive says how far that is; archive it when it is back"},
	{session.ErrHeld, "legal_hold", "a legal hold on the session or on its tenant keeps it, and nothing was erased: " +
		"GET /v1/sessions/{id}/hold says why, and DELETE lifts it; one on the tenant is the operator's"},
	{session.ErrTenantHeld, "legal_hold", ""},
	{session.ErrTenantDeleted, "tenant_deleted", "the tenant is being deleted, and nothing of it changes any more: " +
		"GET /v1/admin/erasures/{erasure} says how far that is"},
	{session.ErrTooManyTokens, "too_many_tokens", fmt.Sprintf("the session has %d live tokens: revoke some, or let "+
		"them expire", session.MaxLiveTokens)},
	{session.ErrTenantExists, "tenant_exists", "there is a tenant with this id or name: choose another"},
	{session.ErrTooManyKeys, "too_many_keys", fmt.Sprintf("the tenant has %d live keys: revoke some, or let them "+
		"expire", session.MaxLiveKeys)},
	{session.ErrKeyEnded, "key_ended", "the key has expired or was revoked, and nothing can take its place: make " +
		"another with POST /v1/keys"},
	{session.ErrKeyRotated, "key_rotated", ""},
	{session.ErrTooManyPins, "too_many_pins", fmt.Sprintf("the session has %d pins, or they have more tokens than the "+
		"policy's pins.max_tokens: DELETE some, or raise the limit", session.MaxPins)},
	{session.ErrResultStore, request.Unavailable, "the result store does not answer, which holds what results or old " +
		"messages say: try again after Retry-After. The database answers, and all else can be read"},
	{session.ErrBusy, "busy", "two greps or searches of the tenant run, and one waited a second for its turn: try " +
		"again after Retry-After"},
	{session.ErrSessionBusy, "session_busy", "others write to the session, or hold its lock for long: nothing was " +
		"written; try again after Retry-After"},
	{session.ErrTenantBusy, "tenant_busy", "the tenant's other requests use its share of the database connections: " +
		"nothing was done; try again after Retry-After, with fewer requests at once"},
	{session.ErrOverCapacity, "over_capacity", "what runs here now leaves no memory, processor or connection for it, " +
		"and it has waited for some: nothing was done; try again after Retry-After"},
	{session.ErrTooHeavy, "too_heavy", "this needs more memory than the process has: read the view in the " +
		"session's own format without a bound, or the messages page by page; or the operator gives the process " +
		"more memory"},
	{session.ErrExists, "session_exists", "there is a session with this id: PUT /v1/sessions/{id} gets it, or " +
		"choose another id"},
}

var (
	errNoRun = request.Fail(request.NotFound,
		"there is no such session, or no such run of it: GET /v1/sessions/{id}/runs lists them")
	errNoCheckpoint = request.Fail(request.NotFound,
		"there is no such session, or no such checkpoint of it: GET /v1/sessions/{id}/checkpoints lists them")
	errNoArchive = request.Fail(request.NotFound, "there is no such session, or it is not archived")
	errNoHold    = request.Fail(request.NotFound, "there is no such session or tenant, or no legal hold on it")
	errNoErasure = request.Fail(request.NotFound, "there is no such erasure: GET /v1/erasures lists them")
	errNoToken   = request.Fail(request.NotFound,
		"there is no such session, or no such token of it: GET /v1/sessions/{id}/tokens lists them")
	errNoTenant = request.Fail(request.NotFound, "there is no such tenant: GET /v1/admin/tenants lists them")
	errNoKey    = request.Fail(request.NotFound, "there is no such key: GET /v1/keys lists them")

	errPanic = errors.New("panic") // a bug of ours; the log has its stack
)

// failureOf maps an error to its code. Any error that it does not know is internal, and its text is not sent.
func failureOf(err error) *request.Failure {
	var known *request.Failure
	var invalid *session.InvalidError
	var stale *session.StaleError
	var staleVersion *session.StaleVersionError
	var cannotFit *session.CannotFitError
	var exceeded *session.WindowExceededError
	var differs *session.DiffersError
	var damaged *session.DamagedError
	switch {
	case errors.As(err, &damaged): // first: a decoder's io.ErrUnexpectedEOF is no lost connection
		return damagedFailure(damaged)
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid):
		return &request.Failure{Code: codeOf(invalid), Detail: invalid.Error(), Problems: invalid.Problems}
	case errors.As(err, &stale):
		return staleFailure(stale)
	case errors.As(err, &differs):
		return &request.Failure{Code: "session_differs", Detail: differs.Error()}
	case errors.As(err, &staleVersion):
		return &request.Failure{Code: "stale_policy_version", Detail: staleVersion.Error()}
	case errors.As(err, &cannotFit):
		return &request.Failure{Code: "view_cannot_fit", Detail: cannotFit.Error() + ": ask for at least as many",
			Minimum: &cannotFit.Minimum}
	case errors.As(err, &exceeded):
		return &request.Failure{Code: "window_exceeded", Detail: exceeded.Error() +
			": choose a model with a larger window, or remove them", Minimum: &exceeded.Minimum}
	}
	if f := quotaFailure(err); f != nil {
		return f
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return &request.Failure{Code: s.code, Detail: specific(err, s.err, s.detail)}
		}
	}
	if failed := databaseFailure(err); failed != nil {
		return failed
	}
	return &request.Failure{Code: request.InternalError, Detail: "something went wrong on our side; the log knows " +
		"it by the request id"}
}

// codeOf returns the code of an input as a whole: the codes of policies are those of single problems only.
func codeOf(e *session.InvalidError) string {
	if slices.Contains(problemCodes, e.Code) {
		return request.InvalidRequest
	}
	return e.Code
}

// specific returns the error's own text if it has more details than its sentinel, else the general text.
func specific(err, sentinel error, general string) string {
	if text := err.Error(); general == "" || sentinel == session.ErrNotFound && text != sentinel.Error() {
		return text
	}
	return general
}

func damagedFailure(e *session.DamagedError) *request.Failure {
	return &request.Failure{Code: codeDamaged, Detail: e.What + " is damaged: what is stored is not what came in, " +
		"and is not served; everything else stays readable. The operator finds out more with varve verify"}
}

// codeReadOnly is the code of a write to a process that has a standby as its database: to send it there again does not
// help.
const codeReadOnly = "read_only"

// codeDamaged is the code of the one fault of the server that no repetition of the request mends.
const codeDamaged = "damaged"

func staleFailure(e *session.StaleError) *request.Failure {
	f := &request.Failure{Code: "stale_expected_seq", Current: &e.Current}
	if e.Current > e.Expected {
		f.Detail = fmt.Sprintf("the session's last seq is %d, not %d: read from seq %d, then append with "+
			"expected_seq %d", e.Current, e.Expected, e.Expected+1, e.Current)
	} else {
		f.Detail = fmt.Sprintf("the session's last seq is %d, it has no %d yet: append with expected_seq %d",
			e.Current, e.Expected, e.Current)
	}
	return f
}

// databaseIsDown reports whether err means that the database could not be asked or could not answer now, and that the
// same request may work later.
func databaseIsDown(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return transient(pg.Code)
	case errors.As(err, &connect), errors.As(err, &network), pgconn.SafeToRetry(err):
		return true
	}
	for _, lost := range []error{context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, puddle.ErrClosedPool} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// databaseFailure returns what to answer if the database did not do what it was asked, nil for other errors.
func databaseFailure(err error) *request.Failure {
	var pg *pgconn.PgError
	code := ""
	if errors.As(err, &pg) {
		code = pg.Code
	}
	switch {
	case code == "55P03": // lock_timeout
		return failureOf(session.ErrSessionBusy)
	case code == "57014", code == "25P03", code == "" && errors.Is(err, context.DeadlineExceeded):
		return &request.Failure{Code: timedOut, RetryAfter: retryTimedOut, Detail: fmt.Sprintf("it took longer than "+
			"%s and was stopped: ask for less, or try again after Retry-After%s", requestTimeout, unknownWrite)}
	case code == "25006":
		return &request.Failure{Code: codeReadOnly, Detail: "the database of this process takes no writes, it is a " +
			"standby or read-only: nothing was written; send this to a process whose database is the primary"}
	case errors.Is(err, postgres.ErrLogin): // somebody changed it while the process runs
		return &request.Failure{Code: request.Unavailable, Detail: "the login of this process at the database " +
			"cannot be used now, and its log says why: nothing was done; try again after Retry-After"}
	case code == "53300": // too_many_connections
		return &request.Failure{Code: request.Unavailable, Detail: "the database has no connection left for this " +
			"process, whose log says which limit is reached: nothing was done; try again after Retry-After"}
	case databaseIsDown(err):
		return &request.Failure{Code: request.Unavailable, Detail: databaseAway}
	}
	return nil
}

// The code of a request that took too long, and when it should be sent again: it would be as slow at once.
const (
	timedOut      = "timed_out"
	retryTimedOut = 30 * time.Second
)

const databaseAway = "the database does not answer: try again after Retry-After" + unknownWrite

// databaseIsAway reports whether the database answers nothing at all, so that a request that took too long did so for
// that reason.
func (s *Server) databaseIsAway(req *request.Request) bool {
	_, cause := s.ready.look(context.WithoutCancel(req.Ctx), s)
	var answered *pgconn.PgError
	return cause != nil && databaseIsDown(cause) && !errors.As(cause, &answered)
}

const unknownWrite = ". Whether a write happened is not known: repeat it with its Idempotency-Key or client_ids"

// transient reports whether a SQLSTATE is of the kind: connection lost, login refused, out of resources, stopping or
// starting, cancelled, deadlock, serialization, a lock not got, a disk that fails.
func transient(state string) bool {
	for _, class := range []string{"08", "28", "53", "55P03", "57", "58", "40", "25006", "25P03"} {
		if strings.HasPrefix(state, class) {
			return true
		}
	}
	return false
}

var (
	problemType  = []string{"application/problem+json"}
	retryAfterMS = []string{"1000"}
	supported    = []string{"gzip, zstd"}
	challenge    = []string{`Bearer realm="varve"`}

	scopeChallenge = []string{`Bearer realm="varve", error="insufficient_scope"`}
)

// answer sends the error to the caller, unless the caller is gone or has a part of the answer already.
func (s *Server) answer(req *request.Request, err error, committed bool) {
	f, status := s.failed(req, err)
	gone := errors.Is(err, context.Canceled) && req.R.Context().Err() != nil
	switch {
	case gone, errors.Is(err, request.ErrClientGone):
		req.ProblemCode, req.Cause = "client_gone", nil
		if !committed {
			req.W.WriteHeader(statusClientGone)
		}
		return
	case committed:
		req.Truncated = true
		return
	}
	s.pause(req)
	if err := writeProblem(req, f, status); err != nil {
		req.Cause = errors.Join(req.Cause, err)
	}
}

// failed returns what to answer to an error, and notes it for the log.
func (s *Server) failed(req *request.Request, err error) (f *request.Failure, status int) {
	postgres.CountDamage(err)
	f = failureOf(err)
	if f.Code == timedOut && s.databaseIsAway(req) {
		f = &request.Failure{Code: request.Unavailable, Detail: databaseAway}
	}
	status = cmp.Or(f.Status, statuses[f.Code])
	if status == 0 {
		f, status = &request.Failure{Code: request.InternalError, Detail: f.Detail}, http.StatusInternalServerError
	}
	req.ProblemCode = f.Code
	if said, writes := strings.CutSuffix(f.Detail, unknownWrite); writes && req.R.Method == http.MethodGet {
		f.Detail = said
	}
	if status >= http.StatusInternalServerError {
		req.Cause = err
	}
	return f, status
}

// maxPaused is how many refused requests wait for their answers at most.
const maxPaused = 4096

// pause lets a request that was refused because there are too many wait, with nothing but its connection: a client that
// does not heed Retry-After then sends one request a second, and not as many as a processor can refuse.
func (s *Server) pause(req *request.Request) {
	if s.Pause == 0 || !slices.Contains(shed, req.ProblemCode) || s.draining.Load() {
		return
	}
	defer s.paused.Add(-1)
	if s.paused.Add(1) > maxPaused {
		return
	}
	select {
	case <-time.After(s.Pause):
	case <-req.R.Context().Done():
	}
}

// statusClientGone is a status that only nginx has. It is for the log: no client is left to read it.
const statusClientGone = 499

// problemOf returns a failure as it is answered.
func problemOf(req *request.Request, f *request.Failure, status int) protocol.Problem {
	retryable := status == http.StatusInternalServerError && f.Code != codeDamaged ||
		status == http.StatusServiceUnavailable && f.Code != codeReadOnly || status == http.StatusRequestTimeout ||
		status == http.StatusTooManyRequests
	return protocol.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.Detail,
		Instance: req.R.URL.EscapedPath(),
		Code:     f.Code, RequestID: req.ID, Retryable: retryable, Current: f.Current, Minimum: f.Minimum,
		Scope: f.Scope, Errors: f.Problems,
		Error: protocol.OpenAIError{Message: f.Detail, Type: openai.ErrorType(status), Code: f.Code,
			Param: param(f.Problems)},
	}
}

func writeProblem(req *request.Request, f *request.Failure, status int) error {
	problem := problemOf(req, f, status)
	kind, answer := problemType, any(problem)
	if req.OpenAI {
		kind = request.JSONType
		answer, status = openai.Problem(f, status)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	h := req.W.Header()
	forgetAnswer(h)
	h["X-Should-Retry"] = []string{strconv.FormatBool(problem.Retryable)}
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if problem.Retryable {
			setRetryAfter(h, f.RetryAfter)
		}
	case http.StatusRequestTimeout:
		h["Connection"] = []string{"close"}
	case http.StatusRequestedRangeNotSatisfiable:
		h["Content-Range"] = []string{fmt.Sprintf("bytes */%d", f.Size)}
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = challenge
	case http.StatusForbidden:
		if f.Code == notAllowed || f.Code == scopeMissing {
			h["Www-Authenticate"] = scopeChallenge
		}
	case http.StatusUnsupportedMediaType:
		h["Accept"], h["Accept-Encoding"] = request.JSONType, supported
	}
	return req.Bytes(status, kind, body)
}

// setRetryAfter says when to send the request again; 0 is a second.
func setRetryAfter(h http.Header, after time.Duration) {
	if after == 0 {
		h["Retry-After"], h["Retry-After-Ms"] = request.RetryAfter, retryAfterMS
		return
	}
	h["Retry-After"] = []string{strconv.Itoa(int(math.Ceil(after.Seconds())))}
	h["Retry-After-Ms"] = []string{strconv.FormatInt(after.Milliseconds(), 10)}
}

func param(problems []session.Problem) *string {
	if len(problems) == 0 {
		return nil
	}
	return &problems[0].Pointer
}
