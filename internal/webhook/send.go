package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/egress"
	"github.com/varve-dev/varve/internal/session"
)

const (
	// maxAnswer is how much of an answer is read, so that its connection can be used again. Nothing of it is kept.
	maxAnswer = 16 << 10

	// maxHeader bounds the headers of an answer.
	maxHeader = 16 << 10
)

// sender sends events to the URLs that tenants have named, signed as the Standard Webhooks describe it. The URLs are
// strangers: it connects to addresses of the internet alone, and to the private networks that the operator has named,
// follows no redirect, waits for a bounded time and reads a bounded answer. It may be used by several goroutines at
// once. Make it with newSender.
type sender struct {
	limit  time.Duration // of one request with its answer
	https  *http.Client
	inside *http.Client // for http, which only the operator's private networks get
}

// newSender returns a sender that waits so long for an answer, has at most that number of connections to a host, and
// reaches these private networks beside the internet.
func newSender(limit time.Duration, connections int, networks []netip.Prefix) *sender {
	client := func(r egress.Rule) *http.Client {
		transport := egress.Transport(egress.Dialer(r), connections)
		transport.MaxResponseHeaderBytes = maxHeader
		return egress.Client(transport)
	}
	return &sender{
		limit: limit, https: client(egress.Rule{Public: true, Networks: networks}),
		inside: client(egress.Rule{Networks: networks}),
	}
}

// answer is how a request went.
type answer struct {
	Error string        // why the event counts as not delivered; "" if it was
	Wait  time.Duration // that the receiver asks for; 0 for none
	Gone  bool          // it answered 410
}

// send sends an event with a signature for each secret. Any status of 200 to 299 counts as delivered.
func (s *sender) send(ctx context.Context, to string, secrets []Secret, e session.Event) answer {
	body, err := json.Marshal(&e)
	if err != nil {
		return answer{Error: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return answer{Error: "the URL cannot be used"}
	}
	id, now := e.ID.String(), time.Now().Unix()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "varve")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now, 10))
	r.Header.Set("Webhook-Signature", signatures(secrets, id, now, body))
	client := s.https
	if r.URL.Scheme == "http" {
		client = s.inside
	}
	response, err := client.Do(r)
	if err != nil {
		return answer{Error: s.reason(err)}
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, maxAnswer); err != nil && !errors.Is(err, io.EOF) {
		return answer{Error: s.reason(err)}
	}
	return answerOf(response)
}

// answerOf returns what an answer says.
func answerOf(response *http.Response) (a answer) {
	status := response.StatusCode
	a.Wait = egress.RetryAfter(response.Header)
	switch {
	case status >= 200 && status < 300:
		return answer{}
	case status >= 300 && status < 400:
		a.Error = fmt.Sprintf("the receiver answered %d: redirects are not followed, name the URL itself", status)
	default:
		a.Error = fmt.Sprintf("the receiver answered %d", status)
		a.Gone = status == http.StatusGone
	}
	return a
}

// reason returns why a request failed, without addresses that only this machine's network knows.
func (s *sender) reason(err error) string {
	var named *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, egress.ErrRefused):
		return "the URL leads to an address that is not of the internet, or is http: use https and a public address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("the receiver took longer than %v", s.limit)
	case errors.As(err, &named):
		return "the host's name cannot be resolved"
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	var address *net.OpError
	if errors.As(err, &address) {
		err = address.Err
	}
	return "the receiver could not be reached: " + err.Error()
}

// signatures returns the header that has a signature of a request for each secret.
func signatures(secrets []Secret, id string, at int64, body []byte) string {
	list := make([]string, len(secrets))
	for i, secret := range secrets {
		sum := hmac.New(sha256.New, secret[:])
		fmt.Fprintf(sum, "%s.%d.%s", id, at, body)
		list[i] = "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	return strings.Join(list, " ")
}
