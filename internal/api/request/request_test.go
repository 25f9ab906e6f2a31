package request_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/session"
)

// ask returns a request as the API's router makes it.
func ask(method, target, body string) *request.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	w := httptest.NewRecorder()
	req := request.New(w, r)
	req.Raw = w
	req.Param = func(string) string { return "a%2Fb" }
	return &req
}

// problemsOf returns the pointers of an error's problems.
func problemsOf(t *testing.T, err error) (pointers []string) {
	t.Helper()
	var invalid *session.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("%v is not an InvalidError", err)
	}
	for _, p := range invalid.Problems {
		pointers = append(pointers, p.Pointer)
	}
	return pointers
}

func TestARequestIsReadUntilItsFirstError(t *testing.T) {
	t.Parallel()
	req := ask("POST", "/", `{"x":1}`)
	req.R.Header["Idempotency-Key"] = []string{"k"}
	if at := req.Address(); at.ID != "a/b" || req.Err() != nil {
		t.Fatalf("%+v, %v", at, req.Err())
	}
	wrong := errors.New("wrong")
	req.Fail(wrong)
	req.Fail(errors.New("later"))
	if body := req.Body(); body != nil {
		t.Errorf("the body was read after an error: %s", body)
	}
	if key := req.Idempotency(); key != nil {
		t.Errorf("the key was read after an error: %+v", key)
	}
	if !errors.Is(req.Err(), wrong) {
		t.Errorf("%v is not the first error", req.Err())
	}
}

func TestEveryProblemOfAQueryComesBeforeOtherErrors(t *testing.T) {
	t.Parallel()
	req := ask("GET", "/?limit=0&limits=1&limit=2", "")
	q := req.Query("limit")
	q.Integer("limit", 1, 10, 5)
	req.Fail(errors.New("later"))
	if got := strings.Join(problemsOf(t, req.Err()), " "); got != "limit limits limit" {
		t.Errorf("problems at %s", got)
	}
}

func TestTheDigestOfARequestCoversItsBody(t *testing.T) {
	t.Parallel()
	digest := func(target, body string) [32]byte {
		req := ask("POST", target, body)
		req.R.Header["Idempotency-Key"] = []string{`"k"`}
		req.Body()
		key := req.Idempotency()
		if key == nil || key.Key != "k" {
			t.Fatalf("%+v, %v", key, req.Err())
		}
		return key.Digest
	}
	if digest("/?a=1&b=2", "{}") != digest("/?b=2&a=1", "{}") {
		t.Error("the order of the parameters changes the digest")
	}
	if digest("/", "{}") == digest("/", "[]") {
		t.Error("the body does not change the digest")
	}
}

func TestABodyWithAMemberIsNotEmpty(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"": "", "{}": "", `{"x":1,"y":2}`: "/x /y"} {
		req := ask("DELETE", "/", body)
		req.EmptyBody()
		got := ""
		if req.Err() != nil {
			got = strings.Join(problemsOf(t, req.Err()), " ")
		}
		if got != want {
			t.Errorf("%s: problems at %q, not %q", body, got, want)
		}
	}
}

func TestADocumentReportsEveryProblem(t *testing.T) {
	t.Parallel()
	d, err := request.Open([]byte(`{"n":0,"s":1,"b":"x","t":"soon","n":2,"zz":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range d.Fields([]string{"n", "s", "b", "t"}) {
		switch name {
		case "n":
			d.Integer("/n", value, 1, 2)
		case "s":
			d.Text("/s", value, 10)
		case "b":
			d.Boolean("/b", value)
		case "t":
			d.Time("/t", value)
		}
	}
	if got := strings.Join(problemsOf(t, d.Err()), " "); got != "/n /s /b /t /n /zz" {
		t.Errorf("problems at %s", got)
	}
}

func TestBuffersAreFreedOnce(t *testing.T) {
	t.Parallel()
	req := ask("POST", "/", `{"x":1}`)
	first := req.Body()
	if second := req.Body(); &first[0] != &second[0] {
		t.Error("the body was read twice")
	}
	req.Free()
	req.Free()
	if got := req.W.Header().Get("X-Request-Id"); !strings.HasPrefix(got, "req_") || got != req.ID {
		t.Errorf("the request's id is %q", got)
	}
	if err := req.JSON(http.StatusOK, true); err != nil {
		t.Error(err)
	}
}
