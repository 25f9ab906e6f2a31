package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// uiTurn returns a UIMessage of a turn of several steps, each of which was a request to the model.
func uiTurn(id string, steps int) string {
	step := `{"type":"step-start"},{"type":"tool-read","toolCallId":"%[1]s-%[2]d","state":"output-available","input":{"path":"a.go"},"output":"` + strings.Repeat("package a ", 300) + `"}`
	parts := make([]string, steps)
	for i := range parts {
		parts[i] = fmt.Sprintf(step, id, i)
	}
	return `{"id":"` + id + `","role":"assistant","parts":[` + strings.Join(parts, ",") + `]}`
}

type appended struct {
	session.Appended
	Superseded int64 `json:"superseded"`
}

// TestTheSumOfATurnIsNotARequestsUsage has AI SDK 7 report, of a turn of 14 steps, the sum of their usage: 196,315 tokens
// in a window of 40,000. Neither that nor the turns behind it may make the session due, in any way that a message comes.
func TestTheSumOfATurnIsNotARequestsUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sum := `"usage":{"input_tokens":194315,"output_tokens":2000}`
	for name, send := range map[string]func(path string) appended{
		"append": func(path string) appended {
			return decoded[appended](w.must(http.StatusCreated, "POST", path+"/messages", `{"messages":[`+uiTurn("a", 14)+`],`+sum+`}`))
		},
		"the whole array": func(path string) appended {
			return decoded[appended](w.must(http.StatusOK, "PUT", path+"/messages", `{"messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"go"}]},`+uiTurn("a", 14)+`],`+sum+`}`))
		},
		"a message that changed": func(path string) appended {
			w.must(http.StatusCreated, "POST", path+"/messages", `{"messages":[`+uiTurn("a", 2)+`],"client_ids":["a"]}`)
			return decoded[appended](w.must(http.StatusOK, "PATCH", path+"/messages/a", `{"message":`+uiTurn("a", 14)+`,`+sum+`}`))
		},
	} {
		path := "/v1/sessions/" + strings.ReplaceAll(name, " ", "-")
		w.must(http.StatusCreated, "PUT", path, `{"format":"ai-sdk","window_tokens":40000}`)
		w.must(http.StatusCreated, "POST", path+"/messages", `{"messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"go"}]}],"client_ids":["u"]}`)
		done := send(path)
		got := decoded[sessionUsage](w.must(http.StatusOK, "GET", path, ""))
		if got.CalibratedTokens != done.ContextTokens || got.LastUsage != nil || done.Compaction != session.CompactionNone {
			t.Errorf("%s: %+v, %+v: the sum of the steps is believed", name, got, done)
		}
		if !strings.Contains(done.UsageIgnored, "14 steps") {
			t.Errorf("%s: the answer does not tell why the usage is ignored: %q", name, done.UsageIgnored)
		}
	}
}

// TestUsageMayBeThatOfEachStep reports a usage for each request of a turn: the last one is the view's.
func TestUsageMayBeThatOfEachStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"ai-sdk","window_tokens":40000}`)
	body := `{"messages":[` + uiTurn("a", 2) + `],"usage":[{"input_tokens":9000,"output_tokens":10},{"model":"m","input_tokens":300,"cache_read_tokens":9000,"output_tokens":20}]}`
	done := decoded[appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", body))
	got := decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/s", ""))
	if got.CalibratedTokens != 9320 || got.LastUsage == nil || got.LastUsage.Model != "m" || done.UsageIgnored != "" {
		t.Errorf("%+v, %+v, want the last step's 9,320 tokens", got, done)
	}
	one := decoded[appended](w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", `{"messages":[`+uiTurn("b", 1)+`],"usage":{"input_tokens":10000}}`))
	if got = decoded[sessionUsage](w.must(http.StatusOK, "GET", "/v1/sessions/s", "")); got.LastUsage.InputTokens != 10000 || one.UsageIgnored != "" {
		t.Errorf("%+v, %+v: the usage of a message of one step is its own", got, one)
	}
	for usage, pointer := range map[string]string{
		`[]`: "/usage", `[{"input_tokens":1},{}]`: "/usage/1/input_tokens", `[{"input_tokens":1,"total":1}]`: "/usage/0/total", `[7]`: "/usage/0",
	} {
		refused := decoded[problem](w.ask("POST", "/v1/sessions/s/messages", `{"messages":[`+uiTurn("c", 2)+`],"usage":`+usage+`}`))
		if len(refused.Errors) != 1 || refused.Errors[0].Pointer != pointer {
			t.Errorf("%s: %+v, want %s", usage, refused.Errors, pointer)
		}
	}
}

// TestAfterARefusalTheNextViewFits has a provider refuse views as too long that the estimate calls short, and views that
// were bounded by it: what was sent counts as more than the window then, a compaction becomes due, and a view that must
// fit is smaller.
func TestAfterARefusalTheNextViewFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const alone = `{"refused":"context_length_exceeded"}`
	counted := func(tokens int) string {
		return fmt.Sprintf(`{"refused":"context_length_exceeded","refused_tokens":%d}`, tokens)
	}
	for name, of := range map[string]struct {
		turns  int
		report string
		want   [2]float64 // windows that the view counts as after the first report and the second
	}{
		"short":                   {8, alone, [2]float64{1.1, 1.21}},
		"short and counted":       {8, counted(30_000), [2]float64{3, 3}},
		"short by a wrong count":  {8, counted(9_000), [2]float64{1.1, 1.21}},
		"bounded by the window":   {40, alone, [2]float64{1.1 * 1.52, 1.21 * 1.52}},
		"over and counted so":     {40, counted(21_000), [2]float64{2.1, 2.1}},
		"bounded, and counted so": {40, counted(12_000), [2]float64{1.2 * 1.52, 1.44 * 1.52}},
	} {
		path := "/v1/sessions/" + strings.ReplaceAll(name, " ", "-")
		w.must(http.StatusCreated, "PUT", path, `{"format":"openai-chat","window_tokens":10000}`)
		for range of.turns {
			w.must(http.StatusCreated, "POST", path+"/messages", batch("openai-chat", user(strings.Repeat("several words of text ", 100))))
		}
		// A compaction was asked for already and gave nothing, and what was counted exactly was what was estimated.
		w.exec(`UPDATE sessions SET armed_threshold = 3, counted_tokens = 1000, exact_tokens = 1000 WHERE counted_tokens = 0`)
		for i, want := range of.want {
			got := decoded[sessionUsage](w.must(http.StatusOK, "PATCH", path, of.report))
			if d := float64(got.CalibratedTokens)/10_000 - want; d < -0.02 || d > 0.02 {
				t.Errorf("%s: %d tokens after report %d, want %g windows", name, got.CalibratedTokens, i+1, want)
			}
			read := decoded[fitted](w.must(http.StatusOK, "GET", path+"/context?fit=window&wait=0", ""))
			if n := float64(read.Tokens) * got.Calibration; n > 10_000 || read.Tokens == 0 {
				t.Errorf("%s: after report %d the view counts %g of 10,000 tokens", name, i+1, n)
			}
		}
		if runs := decoded[struct{ Data []session.Run }](w.must(http.StatusOK, "GET", path+"/runs", "")).Data; len(runs) != 1 || runs[0].State != session.RunQueued {
			t.Errorf("%s: %+v, want a compaction", name, runs)
		}
	}
	w.exec(`SELECT 1 / (count(*) FILTER (WHERE exact_tokens > counted_tokens) / count(*)) FROM sessions`)
	for report, pointer := range map[string]string{
		`{"refused":"too_long"}`: "/refused", `{"refused":7}`: "/refused", `{"refused_tokens":7}`: "/refused",
		`{"refused":"context_length_exceeded","refused_tokens":0}`: "/refused_tokens",
	} {
		if p := decoded[problem](w.must(http.StatusUnprocessableEntity, "PATCH", "/v1/sessions/short", report)); len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s: %+v, want %s", report, p.Errors, pointer)
		}
	}
}
