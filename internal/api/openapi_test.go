package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/features"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
)

func TestTheDescriptionHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`:([a-z]+)`)
	var routes, operations, heads []string
	for _, route := range newWorld(t).server.Routes() {
		method, path, _ := strings.Cut(route, " ")
		path = named.ReplaceAllString(path, "{$1}")
		if method == http.MethodHead {
			heads = append(heads, "GET "+path)
			continue
		}
		routes = append(routes, method+" "+path)
	}
	for _, op := range apitest.Described().Operations {
		operations = append(operations, op.Method+" "+op.Path)
	}
	slices.Sort(operations)
	slices.Sort(routes) // a name in braces sorts otherwise than one after a colon
	if diff := cmp.Diff(routes, operations); diff != "" {
		t.Errorf("the routes (-) and the description (+) differ:\n%s", diff)
	}
	gets := slices.DeleteFunc(slices.Clone(routes), func(route string) bool { return !strings.HasPrefix(route, "GET ") })
	slices.Sort(heads)
	if diff := cmp.Diff(gets, heads); diff != "" {
		t.Errorf("the routes with GET (-) and HEAD (+) differ:\n%s", diff)
	}
}

func TestTheDescriptionNamesEveryFormatCodeAndSource(t *testing.T) {
	t.Parallel()
	d := apitest.Described()
	formats, sources := []string{}, []string{string(importer.Auto), archive.Source}
	for _, f := range session.Formats() {
		formats = append(formats, string(f))
	}
	for _, s := range importer.Sources() {
		sources = append(sources, string(s))
	}
	codes := slices.Collect(maps.Keys(api.Codes))
	for _, f := range features.All() {
		for _, e := range f.Errors {
			codes = append(codes, e.Code)
		}
	}
	from := d.Find(http.MethodPost, "/v1/imports").Parameters[1]
	for at, want := range map[string][]string{
		"/components/schemas/Format": formats, "/components/schemas/Problem/properties/code": codes, from.At + "/schema": sources,
	} {
		var named []string
		for _, word := range d.Resolve("", map[string]any{"$ref": "#" + at}).Value["enum"].([]any) {
			named = append(named, word.(string))
		}
		slices.Sort(named)
		slices.Sort(want)
		if diff := cmp.Diff(want, named); diff != "" {
			t.Errorf("%s: what there is (-) and the description (+) differ:\n%s", at, diff)
		}
	}
}

func TestTheDescriptionIsServedToAnybody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, kind := range map[string]string{"/openapi.yaml": "application/yaml", "/openapi.json": "application/json", "/docs/api.html": "text/html; charset=utf-8"} {
		got := w.must(http.StatusOK, "GET", path, "", "Authorization", "")
		if h := got.Header(); h.Get("Content-Type") != kind || h.Get("Cache-Control") != "public, max-age=300" || !strings.Contains(got.Body.String(), "/v1/sessions") {
			t.Errorf("%s: %v", path, h)
		}
	}
	policy := w.must(http.StatusOK, "GET", "/docs", "").Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
		t.Errorf("the pages' policy of contents is %s", policy)
	}
	w.must(http.StatusNotFound, "GET", "/docs/nothing.html", "")
}

// TestAPersonSearchesTheDocumentation has a browser look for words of a guide, under the policy of contents.
func TestAPersonSearchesTheDocumentation(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	server := httptest.NewServer(newWorld(t).server)
	defer server.Close()
	for query, want := range map[string]string{
		"freeze cold": `<a href="operations.html#cold-sessions">Cold sessions</a>`, "<img src=x>": "0 sections",
	} {
		page, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000",
			"--user-data-dir="+t.TempDir(), "--dump-dom", server.URL+"/docs/search.html?q="+url.QueryEscape(query)).Output()
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s: %v\n%s", query, err, page)
		}
	}
}

// TestEveryOperationIsNamedAndSaysWhatItAnswers holds the description to what a reader needs of each operation.
func TestEveryOperationIsNamedAndSaysWhatItAnswers(t *testing.T) {
	t.Parallel()
	d := apitest.Described()
	seen := map[any]bool{}
	for _, op := range d.Operations {
		id, summary := op.Value["operationId"], op.Value["summary"]
		if id == nil || summary == nil || seen[id] || len(op.Value["tags"].([]any)) != 1 {
			t.Errorf("%s %s: operationId %v, summary %v, tags %v", op.Method, op.Path, id, summary, op.Value["tags"])
		}
		seen[id] = true
		var inPath []string
		for _, p := range op.Parameters {
			if p.Value["in"] == "path" {
				inPath = append(inPath, fmt.Sprintf("{%s}", p.Value["name"]))
			}
			if p.Value["description"] == nil || p.Value["schema"] == nil {
				t.Errorf("%s %s: parameter %v says too little", op.Method, op.Path, p.Value["name"])
			}
		}
		slices.Sort(inPath)
		want := regexp.MustCompile(`\{[a-z]+\}`).FindAllString(op.Path, -1)
		slices.Sort(want)
		if diff := cmp.Diff(want, inPath); diff != "" {
			t.Errorf("%s %s: %s", op.Method, op.Path, diff)
		}
	}
}

// TestTheDescriptionHasEveryParameterAndMember asks each route for a parameter, and with a member in its body, that it
// cannot know: the answers name all that it does.
func TestTheDescriptionHasEveryParameterAndMember(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), apitest.Described()
	w.provision(`{"name":"shown","id":"0198f0c1-7c1e-7000-8000-00000000000c"}`)
	for _, id := range []string{"chat-42", "conv_0198f0c17c1e70008000000000000005"} {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, "")
	}
	passedOver := []string{"include", "include[]"} // by every route of OpenAI's
	for _, op := range d.Operations {
		if op.Value["tags"].([]any)[0] == "Operation" {
			continue
		}
		path, parameters := op.Path, []string{}
		for _, p := range op.Parameters {
			name := p.Value["name"].(string)
			if p.Value["in"] == "path" {
				path = strings.Replace(path, "{"+name+"}", url.PathEscape(fmt.Sprint(p.Value["example"])), 1)
			}
			ofOpenAI := op.Value["tags"].([]any)[0] == "OpenAI"
			if p.Value["in"] == "query" && !(ofOpenAI && slices.Contains(passedOver, name)) {
				parameters = append(parameters, name)
			}
		}
		if diff := cmp.Diff(w.ask(op.Method, path+"?zzzzzzzz=1", "").known(), parameters, asSets); diff != "" {
			t.Errorf("%s %s: the parameters that there are (-) and the description (+) differ:\n%s", op.Method, path, diff)
		}
		body, _ := d.Member(apitest.Part{At: op.At, Value: op.Value}, "requestBody")
		content, _ := d.Member(body, "content")
		media, ok := d.Member(content, "application/json")
		if !ok {
			continue
		}
		schema, _ := d.Member(media, "schema")
		if schema.Value["description"] == "a JSON-RPC message" { // its members are another protocol's
			continue
		}
		if diff := cmp.Diff(w.ask(op.Method, path, `{"zzzzzzzz":1}`).known(), members(d, schema), asSets); diff != "" {
			t.Errorf("%s %s: the members that there are (-) and the description (+) differ:\n%s", op.Method, path, diff)
		}
	}
}

// asSets compares lists of names in any order.
var asSets = cmp.Transformer("set", func(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
})

var listed = regexp.MustCompile(`zzzzzzzz[^"]*[:;] there are ([a-z0-9_, ]+)"`)

// known returns the names that an answer suggests instead of zzzzzzzz.
func (a answer) known() []string {
	a.Helper()
	said := listed.FindStringSubmatch(strings.ReplaceAll(a.Body.String(), `\"`, "'"))
	switch {
	case said == nil:
		return []string{a.Body.String()}
	case said[1] == "none":
		return nil
	}
	return strings.Split(said[1], ", ")
}

// members returns the names of an object's members, by its schema.
func members(d *apitest.Description, schema apitest.Part) (names []string) {
	properties, _ := d.Member(schema, "properties")
	names = slices.Collect(maps.Keys(properties.Value))
	for _, base := range d.List(schema.At+"/allOf", schema.Value["allOf"]) {
		names = append(names, members(d, base)...)
	}
	return names
}

// TestTheCheckFindsWhatIsNotDescribed: what every test relies on must be able to fail.
func TestTheCheckFindsWhatIsNotDescribed(t *testing.T) {
	t.Parallel()
	const run = `{"data":[],"has_more":false,"next_seq":null}`
	for name, test := range map[string]struct {
		method, path, request string
		status                int
		header, answer, want  string
	}{
		"an answer as it should be": {"GET", "/v1/sessions/s/messages?limit=1", "", 200, "", run, ""},
		"another member":            {"GET", "/v1/sessions/s/messages", "", 200, "", `{"data":[],"has_more":false,"next_seq":null,"x":1}`, "additional properties 'x'"},
		"a missing member":          {"GET", "/v1/sessions/s/messages", "", 200, "", `{"data":[],"has_more":false}`, "missing property 'next_seq'"},
		"another status":            {"GET", "/v1/sessions/s/messages", "", 206, "", run, "the status 206"},
		"a header":                  {"GET", "/v1/sessions/s/messages", "", 200, "ETag", run, "the header Etag"},
		"no header":                 {"GET", "/v1/sessions/s/context", "", 200, "", run, "the header ETag is missing"},
		"a body where none is":      {"DELETE", "/v1/sessions/s", "", 204, "Location", run, "there is a body"},
		"another Content-Type":      {"GET", "/metrics", "", 503, "X-Should-Retry", run, "is missing"},
		"a parameter":               {"GET", "/v1/sessions/s/messages?most=1", "", 200, "", run, "the parameter most"},
		"a parameter out of range":  {"GET", "/v1/sessions/s/messages?limit=0", "", 200, "", run, "minimum"},
		"a member of the request":   {"PATCH", "/v1/sessions/s", `{"x":1}`, 200, "", ``, "EOF"},
		"another route":             {"GET", "/v2/sessions", "", 200, "", run, "the route"},
		"another method":            {"POST", "/livez", "", 200, "", run, "the route"},
	} {
		got := httptest.NewRecorder()
		got.Header().Set("Content-Type", "application/json")
		if test.header != "" {
			got.Header().Set(test.header, "true")
		}
		got.WriteHeader(test.status)
		got.WriteString(test.answer)
		err := apitest.Described().Differs(httptest.NewRequest(test.method, test.path, nil), test.request, got)
		if text := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(text, test.want) && err != nil {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
