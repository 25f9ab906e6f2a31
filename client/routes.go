package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Route is a route whose answer is a T: its method, and its path below /v1 with an argument for each {name}.
type Route[T any] string

// Effect is a route whose answer says nothing but that it is done.
type Effect string

// ListRoute is a route whose answer is a page of a list of T.
type ListRoute[T any] string

// Routes whose answers the description has no one type for.
const (
	GetResult        Route[protocol.ResultPage]             = "GET sessions/{session}/results/{ref}"
	Profiles         Route[protocol.List[protocol.Profile]] = "GET policies/profiles"
	PreviewRetention Route[session.Expired]                 = "GET retention/preview"
	Audit            Route[protocol.List[audit.Entry]]      = "GET audit"
	OperatorsAudit   Route[protocol.List[audit.Entry]]      = "GET admin/audit"
)

// Keyring has the routes of the keys of a tenant: the caller's, or one that an operator names.
type Keyring struct {
	at     string
	tenant []any
}

// Keys returns the keyring of the caller's tenant.
func Keys() Keyring { return Keyring{at: "keys"} }

// KeysOf returns the keyring of a tenant for an operator.
func KeysOf(tenant string) Keyring { return Keyring{"admin/tenants/{tenant}/keys", []any{tenant}} }

// Create makes a key.
func (k Keyring) Create(ctx context.Context, c *Client, wanted protocol.KeyRequest) (Answer[protocol.NewKey], error) {
	return Route[protocol.NewKey]("POST "+k.at).With(ctx, c, Options{Body: wanted}, k.tenant...)
}

// List returns the keys, newest first.
func (k Keyring) List(ctx context.Context, c *Client) ([]Answer[session.APIKey], error) {
	return ListRoute[session.APIKey](k.at).All(ctx, c, math.MaxInt, k.tenant...)
}

// Rotate makes a key in the place of one.
func (k Keyring) Rotate(
	ctx context.Context, c *Client, key string, wanted protocol.RotateRequest,
) (Answer[protocol.NewKey], error) {
	return Route[protocol.NewKey]("POST "+k.at+"/{key}/rotate").
		With(ctx, c, Options{Body: wanted}, append(slices.Clone(k.tenant), key)...)
}

// Revoke revokes a key.
func (k Keyring) Revoke(ctx context.Context, c *Client, key string) error {
	return Effect("DELETE "+k.at+"/{key}").Call(ctx, c, append(slices.Clone(k.tenant), key)...)
}

// TenantID returns the id of a tenant that an operator names by its id or its name; ErrNotFound.
func TenantID(ctx context.Context, c *Client, named string) (uuid.UUID, error) {
	if id, err := uuid.Parse(named); err == nil {
		return id, nil
	}
	all, err := ListTenants.All(ctx, c, math.MaxInt)
	if err != nil {
		return uuid.Nil, err
	}
	for i := range all {
		if all[i].Value.Name == named {
			return all[i].Value.ID, nil
		}
	}
	return uuid.Nil, fmt.Errorf("tenant %q: %w", named, session.ErrNotFound)
}

// TenantPolicy returns the route of the default policy of a tenant for an operator.
func TenantPolicy(method string) Route[protocol.Policy] {
	return Route[protocol.Policy](method + " admin/tenants/{tenant}/policy")
}

// Policy returns the route of a session's policy or, without an id, of the tenant's default.
func Policy(method, id string) Route[protocol.Policy] {
	if id == "" {
		return Route[protocol.Policy](method + " policy")
	}
	return Route[protocol.Policy](method + " sessions/{session}/policy")
}

// Options are the parts of a request besides its path; all may be absent.
type Options struct {
	Query Query
	Body  any    // is sent as JSON; a []byte or a reader as it is
	Key   string // Idempotency-Key of a request that would have its effect twice without one

	IfMatch int    // the revision that the object must have; 0 does not check
	Accept  string // what the answer shall be; "" for JSON
}

// Query holds query parameters by name. Those that are "" or a nil pointer are not sent.
type Query map[string]any

func (q Query) encode() string {
	values := url.Values{}
	for name, value := range q {
		switch v := value.(type) {
		case *int:
			if v != nil {
				values.Set(name, strconv.Itoa(*v))
			}
		default:
			if text := fmt.Sprint(v); text != "" {
				values.Set(name, text)
			}
		}
	}
	return values.Encode()
}

// Call sends the request without query and body.
func (e Effect) Call(ctx context.Context, c *Client, args ...any) error {
	return e.With(ctx, c, Options{}, args...)
}

// With sends the request with options.
func (e Effect) With(ctx context.Context, c *Client, o Options, args ...any) error {
	_, err := c.do(ctx, string(e), o, args)
	return err
}

// Call sends a request without query and body.
func (r Route[T]) Call(ctx context.Context, c *Client, args ...any) (Answer[T], error) {
	return r.With(ctx, c, Options{}, args...)
}

// With sends a request with options.
func (r Route[T]) With(ctx context.Context, c *Client, o Options, args ...any) (a Answer[T], err error) {
	body, err := c.do(ctx, string(r), o, args)
	if err != nil {
		return a, err
	}
	return decode[T](string(r), body)
}

// All returns up to limit entries of a list, and reads as many pages as that needs.
func (r ListRoute[T]) All(ctx context.Context, c *Client, limit int, args ...any) ([]Answer[T], error) {
	return r.Find(ctx, c, Query{}, limit, args...)
}

// Find returns up to limit of those entries of a list that a query asks for, which it changes.
func (r ListRoute[T]) Find(ctx context.Context, c *Client, query Query, limit int, args ...any) ([]Answer[T], error) {
	all := []Answer[T]{}
	for a, err := range r.each(ctx, c, query, limit, args) {
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// each returns up to limit entries of a list with their JSON.
func (r ListRoute[T]) each(
	ctx context.Context, c *Client, query Query, limit int, args []any,
) iter.Seq2[Answer[T], error] {
	return func(yield func(Answer[T], error) bool) {
		if query == nil {
			query = Query{}
		}
		for {
			query["limit"] = min(limit, 100)
			page, err := Route[protocol.List[Answer[T]]]("GET "+r).With(ctx, c, Options{Query: query}, args...)
			if err != nil {
				yield(Answer[T]{}, err)
				return
			}
			for _, a := range page.Value.Data {
				if !yield(a, nil) {
					return
				}
			}
			limit -= len(page.Value.Data)
			next := page.Value.NextCursor
			if !page.Value.HasMore || next == nil || limit <= 0 {
				return
			}
			query["cursor"] = *next
		}
	}
}

// request returns the request of a route, with the arguments in place of the names in its path. It ignores arguments
// for which there is no name.
func (c *Client) request(ctx context.Context, route string, o Options, args []any) (*http.Request, error) {
	method, path, _ := strings.Cut(route, " ")
	at := c.Base.JoinPath("v1")
	for part := range strings.SplitSeq(path, "/") {
		if part[0] == '{' {
			part = fmt.Sprint(args[0])
			args = args[1:]
		}
		at = at.JoinPath(url.PathEscape(part))
	}
	at.RawQuery = o.Query.encode()
	body, err := o.body()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	req.Header.Set("User-Agent", "varve-go/"+Version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if o.Key != "" {
		req.Header.Set("Idempotency-Key", o.Key)
	}
	if o.Accept != "" {
		req.Header.Set("Accept", o.Accept)
	}
	if o.IfMatch > 0 {
		req.Header.Set("If-Match", strconv.Quote(strconv.Itoa(o.IfMatch)))
	}
	return req, nil
}

// body returns what to send, nil for nothing.
func (o *Options) body() (io.Reader, error) {
	switch body := o.Body.(type) {
	case nil:
		return nil, nil
	case io.Reader:
		return body, nil
	case []byte:
		return bytes.NewReader(body), nil
	}
	text, err := json.Marshal(o.Body)
	return bytes.NewReader(text), err
}

// RawResult returns the bytes of a persisted result, which the caller closes, and the SHA-256 in hexadecimal that the
// server claims for them.
func (c *Client) RawResult(ctx context.Context, id, ref string) (body io.ReadCloser, sha256 string, err error) {
	body, header, err := c.stream(ctx, "GET sessions/{session}/results/{ref}", Query{"raw": true}, id, ref)
	return body, header.Get("X-Content-Sha256"), err
}

// Export returns the export of a session or, without an id, of all sessions. The caller closes it.
func (c *Client) Export(ctx context.Context, id string) (body io.ReadCloser, err error) {
	if id == "" {
		body, _, err = c.stream(ctx, "GET export", nil)
		return body, err
	}
	body, _, err = c.stream(ctx, "GET sessions/{session}/export", nil, id)
	return body, err
}

// ExportAudit returns the tenant's audit trail behind a row as lines. The caller closes it.
func (c *Client) ExportAudit(ctx context.Context, after int64) (io.ReadCloser, error) {
	body, _, err := c.stream(ctx, "GET audit/export", Query{"after": after})
	return body, err
}

// ExportOperatorsAudit returns the operators' own trail behind a row as lines. The caller closes it.
func (c *Client) ExportOperatorsAudit(ctx context.Context, after int64) (io.ReadCloser, error) {
	body, _, err := c.stream(ctx, "GET admin/audit/export", Query{"after": after})
	return body, err
}

// stream returns the body of an answer, which the caller closes, and its header.
func (c *Client) stream(ctx context.Context, route string, q Query, args ...any) (io.ReadCloser, http.Header, error) {
	res, err := c.open(ctx, route, Options{Query: q}, args)
	if err != nil {
		return nil, nil, err
	}
	return &streamBody{res.Body, ctx, c.Base}, res.Header, nil
}

// streamBody is a body whose errors are like those of requests.
type streamBody struct {
	io.ReadCloser
	ctx  context.Context
	base *url.URL
}

// Read returns the error of a connection that ends early as an *UnreachableError.
func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = unreachable(b.ctx, b.base, err)
	}
	return n, err
}

// EachImportLine calls do for the lines of an import, page by page: those of one outcome unless it is "".
func (c *Client) EachImportLine(ctx context.Context, id, outcome string, do func(protocol.ImportedLine)) error {
	for from := int64(1); ; {
		query := Query{"from": from, "limit": 1000, "outcome": outcome}
		page, err := ListImportLines.With(ctx, c, Options{Query: query}, id)
		if err != nil {
			return err
		}
		for _, line := range page.Value.Data {
			do(line)
		}
		if page.Value.Next == nil {
			return nil
		}
		from = *page.Value.Next
	}
}
