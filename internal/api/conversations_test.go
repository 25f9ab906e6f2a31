package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/protocol"
)

// conversationShown is a conversation as callers decode it.
type conversationShown struct {
	ID       string
	Object   string
	Created  int64 `json:"created_at"`
	Metadata map[string]string
}

// itemList is a page of items as callers decode it.
type itemList struct {
	Object  string
	Data    []map[string]any
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

func (l itemList) ids() (ids []string) {
	for _, item := range l.Data {
		ids = append(ids, item["id"].(string))
	}
	return ids
}

// texts returns the texts of messages, and the call ids of other items.
func (l itemList) texts() (texts []string) {
	for _, item := range l.Data {
		if id, ok := item["call_id"].(string); ok {
			texts = append(texts, id)
			continue
		}
		texts = append(texts, item["content"].([]any)[0].(map[string]any)["text"].(string))
	}
	return texts
}

// conversing makes a conversation of items.
func (w *world) conversing(items ...string) string {
	w.Helper()
	return decoded[conversationShown](w.must(http.StatusOK, "POST", "/v1/conversations", `{"items":[`+strings.Join(items, ",")+`]}`)).ID
}

func (w *world) items(id, query string) itemList {
	w.Helper()
	return decoded[itemList](w.must(http.StatusOK, "GET", "/v1/conversations/"+id+"/items"+query, ""))
}

func call(id string) string {
	return fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"read","arguments":"{\"path\":\"%s\"}"}`, id, id)
}

func output(id, text string) string {
	return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, id, text)
}

func TestAConversationIsASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := decoded[conversationShown](w.must(http.StatusOK, "POST", "/v1/conversations", `{"metadata":{"k":"v"},"items":[`+user("hi")+`]}`))
	if !strings.HasPrefix(made.ID, "conv_") || made.Object != "conversation" || made.Created == 0 || made.Metadata["k"] != "v" {
		t.Errorf("made %+v", made)
	}
	found := decoded[map[string]any](w.must(http.StatusOK, "GET", "/v1/sessions/"+made.ID, ""))
	if found["format"] != "openai-responses" || found["last_seq"] != 1.0 {
		t.Errorf("the session is %v", found)
	}
	changed := decoded[conversationShown](w.must(http.StatusOK, "POST", "/v1/conversations/"+made.ID, `{"metadata":null}`))
	if len(changed.Metadata) > 0 || changed.ID != made.ID {
		t.Errorf("changed %+v", changed)
	}
	w.must(http.StatusOK, "DELETE", "/v1/conversations/"+made.ID, "")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/"+made.ID, "")
	w.must(http.StatusOK, "POST", "/v1/conversations", "")
}

func TestItemsAreAnsweredCompleteAndStoredAsTheyCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := []string{
		`{"role":"user","content":"a"}`,
		`{"type":"message","id":"FAKE_ID","role":"assistant","content":"b","status":null}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`,
		`{"id":"FAKE_ID","type":"function_call","call_id":"c","name":"n","arguments":"{}"}`,
		`{"type":"function_call_output","call_id":"c","output":"o","status":"incomplete"}`,
		`{"type":"unheard_of","value":1}`,
	}
	id := w.conversing(sent...)
	list := w.items(id, "?order=asc")
	want := []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}],"status":"completed"}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}],"status":"completed"}`,
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`,
		`{"type":"function_call","call_id":"c","name":"n","arguments":"{}","status":"completed"}`,
		`{"type":"function_call_output","call_id":"c","output":"o","status":"incomplete"}`,
		`{"type":"unheard_of","value":1}`,
	}
	prefixes := []string{"msg_", "msg_", "rs_1", "fc_", "fco_", "item_"}
	seen := map[string]bool{}
	for i, item := range list.Data {
		name := item["id"].(string)
		if !strings.HasPrefix(name, prefixes[i]) || seen[name] {
			t.Errorf("item %d has the id %q", i, name)
		}
		seen[name] = true
		var wanted map[string]any
		if err := json.Unmarshal([]byte(want[i]), &wanted); err != nil {
			t.Fatal(err)
		}
		wanted["id"] = name
		if diff := cmp.Diff(wanted, item); diff != "" {
			t.Errorf("item %d: %s", i, diff)
		}
		one := decoded[map[string]any](w.must(http.StatusOK, "GET", "/v1/conversations/"+id+"/items/"+name, ""))
		if diff := cmp.Diff(item, one); diff != "" {
			t.Errorf("item %d alone: %s", i, diff)
		}
	}
	log := w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/messages", "").Body.String()
	for _, body := range sent {
		if !strings.Contains(log, `"message":`+body+`}`) {
			t.Errorf("%s is not in the log as it came", body)
		}
	}
}

func TestAListOfItemsGoesOnBehindItsLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.conversing(user("0"), user("1"), user("2"), user("3"), user("4"))
	w.must(http.StatusOK, "DELETE", "/v1/conversations/"+id+"/items/"+w.items(id, "?order=asc").ids()[2], "")
	for order, want := range map[string][]string{"asc": {"0", "1", "3", "4"}, "desc": {"4", "3", "1", "0"}} {
		for limit := 1; limit <= 5; limit++ {
			var got []string
			query, pages := fmt.Sprintf("?order=%s&limit=%d&include[]=a&include[]=b", order, limit), 0
			for more, after := true, ""; more; pages++ {
				page := w.items(id, query+after)
				if len(page.Data) > limit || page.Object != "list" {
					t.Fatalf("page %+v", page)
				}
				got, more = append(got, page.texts()...), page.HasMore
				after = "&after=" + *page.LastID
			}
			if diff := cmp.Diff(want, got); diff != "" || pages != (len(want)+limit-1)/limit {
				t.Errorf("%s by %d in %d pages: %s", order, limit, pages, diff)
			}
		}
	}
	if page := w.items(id, "?limit=5000"); len(page.Data) != 4 {
		t.Errorf("a limit that is too large: %+v", page)
	}
	if page := w.items(w.conversing(), ""); page.FirstID != nil || page.HasMore || page.Data == nil {
		t.Errorf("no items: %+v", page)
	}
}

func TestMessagesOfOtherFormatsAreItemsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("q"),
		`{"role":"assistant","content":"text","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"a","content":"1"}`, `{"role":"tool","tool_call_id":"b","content":"2"}`))
	w.must(http.StatusOK, "POST", "/v1/conversations/s/items", `{"items":[`+user("next")+`]}`)
	want := []string{"q", "text", "a", "b", "a", "b", "next"}
	for limit := 1; limit <= 7; limit++ {
		var got []string
		for more, after := true, ""; more; {
			page := w.items("s", fmt.Sprintf("?order=asc&limit=%d%s", limit, after))
			got, more = append(got, page.texts()...), page.HasMore
			after = "&after=" + *page.LastID
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %d: %s", limit, diff)
		}
	}
	ids := w.items("s", "?order=asc").ids()
	w.must(http.StatusBadRequest, "DELETE", "/v1/conversations/s/items/"+ids[2], "")
	w.must(http.StatusOK, "DELETE", "/v1/conversations/s/items/"+ids[1], "")
	if got := w.items("s", "?order=asc").texts(); cmp.Diff([]string{"q", "a", "b", "next"}, got) != "" {
		t.Errorf("left %v", got)
	}
}

func TestARemovedItemIsInTheLogAndNowhereElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.conversing(user("a"), user("b"))
	ids := w.items(id, "").ids()
	view := w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/context", "")
	for i, status := range []int{http.StatusOK, http.StatusOK, http.StatusNotFound} {
		key := []string{"k", "k", "l"}[i]
		w.must(status, "DELETE", "/v1/conversations/"+id+"/items/"+ids[0], "", "Idempotency-Key", key)
	}
	w.must(http.StatusNotFound, "GET", "/v1/conversations/"+id+"/items/"+ids[0], "")
	for _, path := range []string{"/v1/sessions/" + id + "/context", "/v1/sessions/" + id + "/context?view=full", "/v1/conversations/" + id + "/items"} {
		got := w.must(http.StatusOK, "GET", path, "", "If-None-Match", view.Header().Get("Etag")).Body.String()
		if strings.Contains(got, `"b"`) || !strings.Contains(got, `"a"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if log := w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/messages", "").Body.String(); !strings.Contains(log, `"removed_at":"2`) || !strings.Contains(log, user("b")) {
		t.Errorf("the log is %s", log)
	}
	added := decoded[itemList](w.must(http.StatusOK, "POST", "/v1/conversations/"+id+"/items", `{"items":[`+user("b")+`]}`))
	if added.ids()[0] == ids[0] {
		t.Errorf("a new item has the id of a removed one")
	}
}

func TestAnItemOfAnotherConversationIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.conversing(user("a")), w.conversing(user("a"))
	id := w.items(one, "").ids()[0]
	w.must(http.StatusNotFound, "GET", "/v1/conversations/"+other+"/items/"+id, "")
	w.must(http.StatusNotFound, "DELETE", "/v1/conversations/"+other+"/items/"+id, "")
	w.must(http.StatusBadRequest, "GET", "/v1/conversations/"+other+"/items?after="+id, "")
	w.must(http.StatusNotFound, "GET", "/v1/conversations/"+one+"/items/"+id[:len(id)-1]+"x", "")
}

func TestErrorsOfConversationsAreThoseOfOpenAI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.conversing()
	many := strings.Repeat(user("x")+",", 20) + user("x")
	for _, test := range []struct {
		method, path, body string
		status             int
		kind, param        string
	}{
		{"GET", "/v1/conversations/none", "", 404, "not_found_error", ""},
		{"POST", "/v1/conversations", `{"items":[` + many + `]}`, 413, "invalid_request_error", "items"},
		{"POST", "/v1/conversations", `{"metadata":{"k":1}}`, 400, "invalid_request_error", "metadata.k"},
		{"POST", "/v1/conversations", `{"item":[]}`, 400, "invalid_request_error", "item"},
		{"POST", "/v1/conversations/" + id, `{}`, 400, "invalid_request_error", "metadata"},
		{"POST", "/v1/conversations/" + id + "/items", `{"items":[` + user("x") + `,{"role":7}]}`, 400, "invalid_request_error", "items[1].role"},
		{"POST", "/v1/conversations/" + id + "/items", `{"items":[]}`, 400, "invalid_request_error", "items"},
		{"POST", "/v1/conversations/" + id + "/items", `{}`, 400, "invalid_request_error", "items"},
		{"GET", "/v1/conversations/" + id + "/items?limit=0", "", 400, "invalid_request_error", "limit"},
		{"GET", "/v1/conversations/" + id + "/items?order=up", "", 400, "invalid_request_error", "order"},
		{"GET", "/v1/conversations/" + id + "/items/msg_1", "", 404, "not_found_error", ""},
		{"POST", "/v1/responses/compact", `{"model":"gpt-5"}`, 400, "invalid_request_error", "input"},
		{"POST", "/v1/responses/compact", `{"model":"gpt-5","input":[{"role":7}]}`, 400, "invalid_request_error", "input[0].role"},
		{"POST", "/v1/responses/compact", `{"previous_response_id":"resp_1"}`, 404, "not_found_error", ""},
	} {
		got := w.must(test.status, test.method, test.path, test.body)
		var members map[string]map[string]any
		got.into(&members)
		e := members["error"]
		if len(members) != 1 || len(e) != 4 || e["type"] != test.kind || e["message"] == "" || e["code"] == "" {
			t.Errorf("%s %s %.60s: %s", test.method, test.path, test.body, got.Body)
		}
		if param, _ := e["param"].(string); param != test.param {
			t.Errorf("%s %s %.60s: param %v, want %q", test.method, test.path, test.body, e["param"], test.param)
		}
	}
	w.must(http.StatusUnauthorized, "GET", "/v1/conversations/"+id, "", "Authorization", "Bearer none")
}

// turnOf returns a user's turn, with a large output in it.
func turnOf(n int) []string {
	id := fmt.Sprint("c", n)
	return []string{
		user(fmt.Sprint("question ", n)), call(id), output(id, strings.Repeat("a line of output\n", 400)),
		fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"answer %d"}]}`, n),
	}
}

func TestTheCompactedViewEndsAsItsItemsWereAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	id := w.conversing()
	for n := range 12 {
		w.must(http.StatusOK, "POST", "/v1/conversations/"+id+"/items", `{"items":[`+strings.Join(turnOf(n), ",")+`]}`)
	}
	full := w.items(id, "?order=asc&limit=100")
	w.must(http.StatusOK, "PATCH", "/v1/sessions/"+id, `{"window_tokens":30000,`+resultsOnly+`}`)
	w.must(http.StatusOK, "POST", "/v1/sessions/"+id+"/compact?wait=60", "")
	w.must(http.StatusOK, "POST", "/v1/conversations/"+id, `{"metadata":{"view":"compacted"}}`)
	short := w.items(id, "?order=asc&limit=100")
	if len(short.Data) != len(full.Data) || cmp.Diff(short.ids(), full.ids()) != "" || cmp.Diff(short.Data[1], full.Data[1]) != "" || cmp.Equal(short.Data[2], full.Data[2]) {
		t.Errorf("%d items instead of %d", len(short.Data), len(full.Data))
	}
	if diff := cmp.Diff(full.Data[44:], short.Data[44:]); diff != "" {
		t.Errorf("the newest items: %s", diff)
	}
	if again := w.items(id, "?order=asc&limit=100&view=full"); cmp.Diff(full, again) != "" {
		t.Error("the full view is another one")
	}
	var paged []map[string]any
	for more, after := true, ""; more; {
		page := w.items(id, "?limit=7"+after)
		paged, more = append(paged, page.Data...), page.HasMore
		after = "&after=" + *page.LastID
	}
	for i, item := range paged {
		if diff := cmp.Diff(short.Data[len(paged)-1-i], item); diff != "" {
			t.Errorf("item %d backwards: %s", i, diff)
		}
	}
	for n := 47; n >= 44; n-- {
		newest := w.items(id, "?limit=1")
		if diff := cmp.Diff(full.Data[n], newest.Data[0]); diff != "" {
			t.Errorf("item %d to be popped: %s", n, diff)
		}
		w.must(http.StatusOK, "DELETE", "/v1/conversations/"+id+"/items/"+newest.ids()[0], "")
	}
	if left := w.items(id, "?view=full&order=asc&limit=100"); cmp.Diff(full.Data[:44], left.Data) != "" {
		t.Errorf("%d items are left", len(left.Data))
	}
}

// TestAConversationsItemsFitTheWindow lists a conversation whose newest turn alone is larger than its window.
func TestAConversationsItemsFitTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.conversing()
	w.must(http.StatusOK, "PATCH", "/v1/sessions/"+id, `{"window_tokens":4000}`)
	for n := range 6 {
		items := append(turnOf(n), call(fmt.Sprint("last", n)), output(fmt.Sprint("last", n), strings.Repeat("a line of the output\n", 900)))
		w.must(http.StatusOK, "POST", "/v1/conversations/"+id+"/items", `{"items":[`+strings.Join(items, ",")+`]}`)
	}
	fitted := w.items(id, "?order=asc&limit=100&fit=window")
	want := decoded[struct{ Messages []map[string]any }](w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/context?fit=window&wait=0&pending=keep", ""))
	outputs := func(items []map[string]any) (texts []string) {
		for _, item := range items {
			if text, ok := item["output"].(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	if diff := cmp.Diff(outputs(want.Messages), outputs(fitted.Data)); diff != "" || len(want.Messages) != len(fitted.Data) {
		t.Errorf("%d items, %d messages of the context: %s", len(fitted.Data), len(want.Messages), diff)
	}
	for _, order := range []string{"asc", "desc"} {
		var paged []map[string]any
		for more, after := true, ""; more; {
			page := w.items(id, "?limit=3&fit=window&order="+order+after)
			paged, more = append(paged, page.Data...), page.HasMore
			after = "&after=" + *page.LastID
		}
		if order == "desc" {
			slices.Reverse(paged)
		}
		if diff := cmp.Diff(fitted.Data, paged); diff != "" {
			t.Errorf("paged %s: %s", order, diff)
		}
	}
	all := map[any]any{} // ids by call and type
	for _, item := range w.items(id, "?order=asc&limit=100&view=full").Data {
		all[fmt.Sprint(item["type"], item["call_id"])] = item["id"]
	}
	for _, item := range fitted.Data {
		if whole := all[fmt.Sprint(item["type"], item["call_id"])]; item["call_id"] != nil && item["id"] != whole {
			t.Errorf("the id of %v is %v, not %v", item["call_id"], item["id"], whole)
		}
	}
	for _, wrong := range []string{"fit=window&view=full", "fit=page"} {
		w.must(http.StatusBadRequest, "GET", "/v1/conversations/"+id+"/items?"+wrong, "")
	}
	w.server.Close(t.Context())
	if used := decoded[protocol.Usage](w.must(http.StatusOK, "GET", "/v1/usage", "")).Total; used.Views != 4 {
		t.Errorf("%d views are counted: the context, and three lists whatever their pages are 4", used.Views)
	}
}

// TestWhatATurnAddedCanBePoppedWhateverWasCompacted makes random turns, compacts at random points, and takes back what came
// since the user's newest message: each item is what was added, in the compacted view, too.
func TestWhatATurnAddedCanBePoppedWhateverWasCompacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		id := w.conversing()
		w.must(http.StatusOK, "PATCH", "/v1/sessions/"+id, `{"window_tokens":6000}`)
		var added []map[string]any
		for n := range 14 {
			added = added[:0]
			for _, item := range randomTurn(random, n) {
				added = append(added, w.add(id, item))
			}
			if random.IntN(3) == 0 || n == 13 {
				w.must(http.StatusOK, "POST", "/v1/sessions/"+id+"/compact?wait=60", "")
			}
		}
		for n := len(added) - 1; n >= 0; n-- {
			newest := w.items(id, "?limit=1&view=compacted").Data[0]
			if diff := cmp.Diff(added[n], newest); diff != "" {
				t.Errorf("seed %d, item %d: %s", seed, n, diff)
			}
			w.must(http.StatusOK, "DELETE", "/v1/conversations/"+id+"/items/"+newest["id"].(string), "")
		}
	}
}

// add appends one item and returns it as it is answered.
func (w *world) add(id, item string) map[string]any {
	w.Helper()
	return decoded[itemList](w.must(http.StatusOK, "POST", "/v1/conversations/"+id+"/items", `{"items":[`+item+`]}`)).Data[0]
}

// randomTurn returns a question and some calls with their outputs, some of them parallel, some large.
func randomTurn(random *rand.Rand, n int) []string {
	items := []string{user(fmt.Sprint("question ", n))}
	for round := range random.IntN(4) {
		var outputs []string
		for i := range 1 + random.IntN(2) {
			id := fmt.Sprintf("c%d-%d-%d", n, round, i)
			items = append(items, call(id))
			outputs = append(outputs, output(id, strings.Repeat("a line of "+id+"\n", 1+random.IntN(200))))
		}
		items = append(items, outputs...)
	}
	return append(items, fmt.Sprintf(`{"type":"message","role":"assistant","content":"answer %d"}`, n))
}
