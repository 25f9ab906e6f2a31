package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/api/apitest"
	"github.com/varve-dev/varve/internal/policy"
)

// TestEveryExampleFitsItsSchema validates what the description shows.
func TestEveryExampleFitsItsSchema(t *testing.T) {
	t.Parallel()
	d := apitest.Described()
	checked := map[string]bool{}
	example := func(p apitest.Part) {
		value, ok := p.Value["example"]
		if !ok || checked[p.At] {
			return
		}
		checked[p.At] = true
		if err := d.Fits(p.At+"/schema", value); err != nil {
			t.Errorf("%s: %v", p.At, err)
		}
	}
	for _, op := range d.Operations {
		for _, p := range op.Parameters {
			example(p)
		}
		bodies := []apitest.Part{}
		if body, ok := d.Member(apitest.Part{At: op.At, Value: op.Value}, "requestBody"); ok {
			bodies = append(bodies, body)
		}
		responses, _ := d.Member(apitest.Part{At: op.At, Value: op.Value}, "responses")
		for status := range responses.Value {
			response, _ := d.Member(responses, status)
			bodies = append(bodies, response)
		}
		for _, body := range bodies {
			content, _ := d.Member(body, "content")
			for kind := range content.Value {
				media, _ := d.Member(content, kind)
				example(media)
			}
		}
	}
	if len(checked) < 60 {
		t.Errorf("only %d examples were found", len(checked))
	}
}

// TestExamplesShowTheDefaultPolicyAsItIs compares the trigger of each example of the profile default with the profile's.
func TestExamplesShowTheDefaultPolicyAsItIs(t *testing.T) {
	t.Parallel()
	shown := 0
	var look func(value any)
	look = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, v := range value {
				look(v)
			}
		case map[string]any:
			if value["profile"] == "default" {
				shown++
				if trigger := fmt.Sprint(value["trigger"]); trigger != fmt.Sprint(policy.Default().Trigger) {
					t.Errorf("an example of the default policy has the trigger %s", trigger)
				}
			}
			for _, v := range value {
				look(v)
			}
		}
	}
	look(apitest.Described().Root)
	if shown < 5 {
		t.Errorf("%d examples of the default policy", shown)
	}
}

// TestEveryExampleRuns sends the example of every operation to the API and finds what the description says: the world
// holds each exchange to it. Operations run in the order of the document, those of a tag on one database.
func TestEveryExampleRuns(t *testing.T) {
	t.Parallel()
	for _, tag := range apitest.Described().Root["tags"].([]any) {
		name := tag.(map[string]any)["name"].(string)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.work()
			e := examples{world: w, Description: apitest.Described(), values: w.shown(), repeats: true}
			for _, op := range e.of(name) {
				e.run(op)
			}
		})
	}
}

// everything makes all that examples are about, that of features, too.
func (w *world) everything() *examples {
	w.Helper()
	e := &examples{world: w, Description: apitest.Described(), values: w.shown()}
	for _, op := range e.Operations {
		if e.makes(op) {
			e.run(op)
		}
	}
	return e
}

// shown makes what the examples are about, and says what stands for the ids in them: Varve makes others each time.
func (w *world) shown() map[string]string {
	w.Helper()
	w.fill("chat-41")
	erasure := w.must(http.StatusAccepted, "POST", "/v1/erasures", `{"metadata":{"user_id":"nobody"}}`)
	w.erasureEnded(erasure.Header().Get("Location"))
	w.exec(`INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, error, next_try_at, failed_at)
		SELECT r.tenant_id, r.session_key, r.id, r.job_id, 'a bug', now(), now() - interval '1 minute'
		  FROM runs r JOIN sessions s ON s.tenant_id = r.tenant_id AND s.key = r.session_key
		 WHERE s.id = 'chat-41' LIMIT 1`)
	w.exec(`INSERT INTO river_job (id, kind, args, queue, state, scheduled_at)
		VALUES (1700, 'sweep', '{}', 'nobody', 'scheduled', now() + interval '1 day')`)
	const path = "/v1/sessions/chat-42"
	const own = `{"trigger":0.8,"target":0.6,"trim":{"enabled":true,"min_tokens":100},"summarise":{"words_ratio":0,"names_ratio":0,"lines_ratio":0},"idle":{"enabled":false},"protect":{"yields":false},"cap":{"max_ratio":0,"unit_ratio":0}}`
	w.must(http.StatusCreated, "PUT", path, `{"format":"openai-chat","window_tokens":10000000,"metadata":{"user":"u1"},"policy":`+own+`}`)
	for round := range 2 {
		for n := range 3 {
			w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", turn("openai-chat", 3*round+n, 3, 6000)...))
		}
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
		w.must(http.StatusOK, "POST", path+"/compact?wait=20", "")
		w.must(http.StatusOK, "PATCH", path, `{"window_tokens":10000000}`) // nothing compacts by itself
	}
	w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", turn("openai-chat", 6, 1, 6000)...))
	w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
	w.must(http.StatusOK, "PUT", "/v1/policy", `{"target":0.4}`)
	first := func(list string) map[string]any {
		return decoded[listPage](w.must(http.StatusOK, "GET", list, "")).Data[0]
	}
	conversation := w.must(http.StatusOK, "POST", "/v1/conversations", `{"metadata":{"user":"u1"},"items":[{"role":"user","content":"hi"}]}`)
	items := first("/v1/conversations/" + id(conversation) + "/items")
	tenant := id(w.must(http.StatusCreated, "POST", "/v1/admin/tenants", `{"name":"shown","quotas":{"sessions":100},"policy":{"target":0.4}}`))
	w.must(http.StatusCreated, "PUT", "/v1/sessions/chat-40", "")
	w.archived("chat-40")
	w.must(http.StatusOK, "PUT", "/v1/sessions/chat-41/hold", `{"reason":"case 7 of 2026"}`)
	w.must(http.StatusOK, "PUT", "/v1/admin/tenants/"+tenant+"/hold", `{"reason":"case 7 of 2026"}`)
	gone := id(w.must(http.StatusCreated, "POST", "/v1/admin/tenants", `{"name":"gone","quotas":{"sessions":100}}`))
	deletion := id(w.must(http.StatusAccepted, "DELETE", "/v1/admin/tenants/"+gone+"?confirm="+gone, ""))
	imported := w.must(http.StatusAccepted, "POST", "/v1/imports?more=true", `{"export":{"version":1}}`)
	return map[string]string{
		"0198f0c1-7c1e-7000-8000-000000000001":  w.doneRun(path),
		"0198f0c1-7c1e-7000-8000-000000000010":  id(erasure),
		"0198f0c1-7c1e-7000-8000-000000000004":  id(imported),
		"conv_0198f0c17c1e70008000000000000005": id(conversation),
		"msg_0000000100009f3a8f3c1de6f3d4f1b4":  items["id"].(string),
		"0198f0c1-7c1e-7000-8000-000000000008":  w.newToken("chat-42", "").ID.String(),
		"0198f0c1-7c1e-7000-8000-00000000000a":  id(w.must(http.StatusCreated, "POST", "/v1/keys", `{"role":"viewer"}`)),
		"0198f0c1-7c1e-7000-8000-00000000000b":  id(w.must(http.StatusCreated, "POST", "/v1/admin/keys", `{}`)),
		"0198f0c1-7c1e-7000-8000-00000000000c":  tenant,
		"0198f0c1-7c1e-7000-8000-00000000000d":  id(w.must(http.StatusCreated, "POST", "/v1/admin/tenants/"+tenant+"/keys", `{"role":"viewer"}`)),
		"0198f0c1-7c1e-7000-8000-000000000013":  deletion,
		"r4.0-9f3a":                             first(path + "/results")["ref"].(string),
	}
}

// fill makes sessions of 13 messages each, below their trigger.
func (w *world) fill(ids ...string) {
	w.Helper()
	for i, id := range ids {
		w.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, fmt.Sprintf(`{"window_tokens":20000,"metadata":{"n":"%d"}}`, i))
		w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch("openai-chat", turn("openai-chat", 1, 6, 6000)...))
	}
}

// doneRun returns the id of a session's newest run that made a checkpoint. A worker may have been faster than the request
// for a run, which then changed nothing.
func (w *world) doneRun(path string) string {
	w.Helper()
	for _, run := range decoded[listPage](w.must(http.StatusOK, "GET", path+"/runs", "")).Data {
		if run["state"] == "done" {
			return run["id"].(string)
		}
	}
	w.Fatal("no run has made a checkpoint")
	return ""
}

func id(made answer) string { return decoded[struct{ ID string }](made).ID }

// examples runs the description's examples in a world.
type examples struct {
	*world
	*apitest.Description
	values  map[string]string // what stands for an id that the description shows
	repeats bool              // each is sent several times with one Idempotency-Key
}

// of returns the operations of a tag: those that make something first, those that erase last.
func (e *examples) of(tag string) (ops []apitest.Operation) {
	for _, op := range e.Operations {
		if op.Value["tags"].([]any)[0] == tag {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b apitest.Operation) int {
		first := func(op apitest.Operation) int { // what makes what others are about
			if e.makes(op) {
				return 0
			}
			return 1
		}
		if first(a) != first(b) {
			return first(a) - first(b)
		}
		last := func(op apitest.Operation) int { // what takes away what others need
			return slices.Index([]string{"patchMessage", "putMessages", "deleteTenant"}, fmt.Sprint(op.Value["operationId"])) +
				strings.Count(op.Method, http.MethodDelete) + strings.Count(op.Path, "rebuild")
		}
		return last(a) - last(b)
	})
	return ops
}

func (e *examples) run(op apitest.Operation) {
	e.Helper()
	path, headers := op.Path, []string{}
	query := url.Values{}
	for _, p := range op.Parameters {
		name := p.Value["name"].(string)
		example, shown := p.Value["example"]
		if !shown {
			if p.Value["required"] == true {
				e.Errorf("%s %s: parameter %s has no example", op.Method, op.Path, name)
			}
			continue
		}
		text := fmt.Sprint(example)
		if known, ok := e.values[text]; ok {
			text = known
		}
		switch p.Value["in"] {
		case "path":
			path = strings.Replace(path, "{"+name+"}", url.PathEscape(text), 1)
		case "query":
			query.Set(name, text)
		case "header":
			headers = append(headers, name, text)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	before := e.moment()
	body := e.body(op)
	for shown, made := range e.values {
		body = strings.ReplaceAll(body, shown, made)
	}
	send := func(more ...string) answer { return e.ask(op.Method, path, body, append(headers, more...)...) }
	got := e.once(op, send)
	if got.Code >= http.StatusMultipleChoices {
		e.Errorf("%s %s: %d %s", op.Method, path, got.Code, got.Body)
		return
	}
	e.compare(op, got)
	e.audited(op, before, got)
	e.learn(op, got)
}

// unended is what the examples that follow need the end of.
var unended = regexp.MustCompile(`"state":"(queued|scheduled|running)"`)

// learn has the ids of what was made stand for those that the example of the answer shows, unless they are known, and
// waits for the end of what was begun.
func (e *examples) learn(op apitest.Operation, got answer) {
	e.Helper()
	known := len(e.values)
	if shown := e.answer(op, got.Code); shown != nil && (got.Code == http.StatusCreated || got.Code == http.StatusAccepted) {
		e.match(shown, decoded[any](got))
	}
	if at := got.Header().Get("Location"); got.Code == http.StatusAccepted && len(e.values) > known {
		e.until("it ends: "+at, func() bool { return !unended.MatchString(e.must(http.StatusOK, "GET", at, "").Body.String()) })
	}
}

// match learns the ids of an example that are not known. Of lists, it looks at the first elements.
func (e *examples) match(example, real any) {
	switch example := example.(type) {
	case map[string]any:
		members, _ := real.(map[string]any)
		for name, value := range example {
			e.match(value, members[name])
		}
	case []any:
		if elements, _ := real.([]any); len(example) > 0 && len(elements) > 0 {
			e.match(example[0], elements[0])
		}
	case string:
		if text, ok := real.(string); ok && isShown(example) && e.values[example] == "" {
			e.values[example] = text
		}
	}
}

// isShown reports whether an id is one of those that only examples have.
func isShown(id string) bool { return strings.HasPrefix(id, "0198f0c1-") }

// answer returns the answer that the description shows for a status, nil if it shows none.
func (e *examples) answer(op apitest.Operation, status int) any {
	response, err := e.Response(&op, status)
	if err != nil {
		return nil
	}
	content, _ := e.Member(response, "content")
	media, _ := e.Member(content, "application/json")
	return media.Value["example"]
}

// makes reports whether an operation makes something whose id is not known.
func (e *examples) makes(op apitest.Operation) bool {
	for _, status := range []int{http.StatusCreated, http.StatusAccepted} {
		shown, _ := e.answer(op, status).(map[string]any)
		id, _ := shown["id"].(string)
		ofPath := func(p apitest.Part) bool { return p.Value["example"] == id } // what is there already
		if isShown(id) && e.values[id] == "" && !slices.ContainsFunc(op.Parameters, ofPath) {
			return true
		}
	}
	return false
}

// body returns the example of a request's body.
func (e *examples) body(op apitest.Operation) string {
	e.Helper()
	body, ok := e.Member(apitest.Part{At: op.At, Value: op.Value}, "requestBody")
	if !ok {
		return ""
	}
	content, _ := e.Member(body, "content")
	if media, ok := e.Member(content, "*/*"); ok {
		return media.Value["example"].(string)
	}
	media, _ := e.Member(content, "application/json")
	if example, ok := media.Value["example"]; ok {
		text, err := json.Marshal(example)
		if err != nil {
			e.Fatal(err)
		}
		return string(text)
	}
	if nothing := "#/components/requestBodies/Nothing"; op.Value["requestBody"].(map[string]any)["$ref"] != nothing {
		e.Errorf("%s %s: the body has no example", op.Method, op.Path)
	}
	return ""
}

// compare requires that the answer that the description shows has no member that the real one lacks.
func (e *examples) compare(op apitest.Operation, got answer) {
	e.Helper()
	response, err := e.Response(&op, got.Code)
	if err != nil {
		return // the world has said so
	}
	content, _ := e.Member(response, "content")
	media, ok := e.Member(content, "application/json")
	if !ok {
		return
	}
	shown, ok := media.Value["example"]
	if !ok {
		if op.Path != "/openapi.json" {
			e.Errorf("%s %s: the answer has no example", op.Method, op.Path)
		}
		return
	}
	var real any
	got.into(&real)
	for _, pointer := range invented("", shown, real) {
		e.Errorf("%s %s: the example has %s, the answer has not: %.1000s", op.Method, op.Path, pointer, got.Body)
	}
}

// invented returns the members of an example that the real value does not have. Of lists, it compares the first
// elements.
func invented(at string, example, real any) (pointers []string) {
	switch example := example.(type) {
	case map[string]any:
		members, _ := real.(map[string]any)
		for name, value := range example {
			inside, ok := members[name]
			if !ok {
				pointers = append(pointers, at+"/"+name)
				continue
			}
			pointers = append(pointers, invented(at+"/"+name, value, inside)...)
		}
	case []any:
		if elements, _ := real.([]any); len(example) > 0 && len(elements) > 0 {
			return invented(at+"/0", example[0], elements[0])
		}
	}
	return pointers
}
