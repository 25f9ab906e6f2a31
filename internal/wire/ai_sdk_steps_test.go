package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

const (
	start  = `{"type":"step-start"}`
	looks  = `{"type":"text","text":"I look."}`
	reads  = `{"type":"tool-Read","toolCallId":"a","state":"output-available","input":{"path":"f"},"output":"seen"}`
	edits  = `{"type":"dynamic-tool","toolName":"Edit","toolCallId":"b","state":"output-error","input":{},"errorText":"no"}`
	waits  = `{"type":"tool-Read","toolCallId":"c","state":"input-available","input":{}}`
	source = `{"type":"source-url","sourceId":"s","url":"https://a.b/c"}`
	single = `{"id":"m","role":"assistant","parts":[` + start + `,` + looks + `]}`
)

// TestAMessageOfSeveralStepsIsDividedByStep has no steps for a message that stays whole.
func TestAMessageOfSeveralStepsIsDividedByStep(t *testing.T) {
	t.Parallel()
	said := func(parts string) string { return `{"id":"m1","role":"assistant","parts":[` + parts + `]}` }
	later := func(n int, parts string) string {
		return fmt.Sprintf(`{"id":"m1-step-%d","role":"assistant","parts":[%s]}`, n, parts)
	}
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"a step begins at its start":               {said(start + "," + reads + "," + start + "," + edits + "," + looks), []string{said(start + "," + reads), later(2, start+","+edits+","+looks)}},
		"what is before the first start is a step": {said(looks + "," + start + "," + reads + "," + start + "," + looks), []string{said(looks), later(2, start+","+reads), later(3, start+","+looks)}},
		"a step of nothing is not one": {said(start + "," + start + "," + reads + "," + start + "," + start + "," + looks + "," + start),
			[]string{said(start + "," + start + "," + reads), later(2, start+","+start+","+looks+","+start)}},
		"a step of what no model sees is one": {said(start + "," + source + "," + start + "," + looks), []string{said(start + "," + source), later(2, start+","+looks)}},
		"the first has the other members, and the bytes between": {
			` {"metadata":{"a":[1]}, "role":"assistant","id":"\u0061", "parts" : [ ` + start + ` , ` + reads + ` ,` + start + `, ` + looks + ` ] ,"x":1} `,
			[]string{` {"metadata":{"a":[1]}, "role":"assistant","id":"\u0061", "parts" : [ ` + start + ` , ` + reads + `] ,"x":1} `,
				`{"id":"\u0061-step-2","role":"assistant","parts":[` + start + `, ` + looks + `]}`}},
		"without an id there are none": {`{"role":"assistant","parts":[` + start + "," + reads + "," + start + "," + looks + `]}`,
			[]string{`{"role":"assistant","parts":[` + start + "," + reads + `]}`, `{"role":"assistant","parts":[` + start + "," + looks + `]}`}},
		"one step stays":                         {single, nil},
		"a start in a text is none":              {said(start + `,{"type":"text","text":"\"step-start\" \"step-start\""}`), nil},
		"a call without a result keeps it whole": {said(start + "," + reads + "," + start + "," + waits + "," + reads), nil},
		"a message of the user stays":            {`{"id":"m","role":"user","parts":[` + start + "," + looks + "," + start + "," + looks + `]}`, nil},
		"one of version 4 stays":                 {`{"id":"m","role":"assistant","content":"x","parts":[` + start + "," + looks + "," + start + "," + looks + `]}`, nil},
		"one with repeated keys stays":           {`{"id":"m","id":"n","role":"assistant","parts":[` + start + "," + looks + "," + start + "," + looks + `]}`, nil},
		"parts that are no list stay":            {`{"id":"m","role":"assistant","parts":{"a":` + start + `,"b":` + start + `}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, body := range Steps(session.AISDK, []byte(c.body)) {
				got = append(got, string(body))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkSteps(t, []byte(c.body))
		})
	}
	if Steps(session.OpenAIChat, []byte(said(start+","+reads+","+start+","+looks))) != nil {
		t.Error("a message of another format is divided")
	}
}

func FuzzSteps(f *testing.F) {
	for _, parts := range []string{
		start + "," + reads + "," + start + "," + edits + "," + looks, looks + "," + start + "," + source + "," + start,
		start + `,7,` + start + `,{"type":"reasoning","text":"hm","providerMetadata":{"anthropic":{"signature":"s"}}},` + reads + "," + waits,
		start + `,{"type":"data-x","data":1},` + start + `,{"type":"file","mediaType":"image/png","url":"https://a.b/c"},` + start + "," + reads,
	} {
		f.Add([]byte(`{"id":"m","metadata":{"a":1},"role":"assistant","parts":[` + parts + `]}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkSteps(t, body) })
}

// checkSteps holds the steps of a message to what is promised of them: their parts are those of the message, in all
// formats they are read as the message is, and none of them is divided again.
func checkSteps(t testing.TB, body []byte) {
	t.Helper()
	if rawjson.Check(body, rawjson.Limits{Depth: 64}) != nil {
		return
	}
	bodies := Steps(session.AISDK, body)
	if bodies == nil {
		return
	}
	whole, err := Inspect(session.AISDK, body)
	if err != nil {
		t.Fatalf("%q is divided, and cannot be inspected: %v", body, err)
	}
	var want, got []string
	for i := range whole.Parts {
		want = append(want, described(body, &whole.Parts[i]))
	}
	for _, step := range bodies {
		found, err := Inspect(session.AISDK, step)
		if err != nil || !json.Valid(step) || found.Role != "assistant" {
			t.Fatalf("%q has the step %q: %v", body, step, err)
		}
		for i := range found.Parts {
			got = append(got, described(step, &found.Parts[i]))
		}
		if again := Steps(session.AISDK, step); again != nil {
			t.Fatalf("%q is divided again: %q", step, again)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q (-parts +those of its steps):\n%s", body, diff)
	}
	for _, f := range session.Formats() {
		if f != session.AISDK {
			checkRendered(t, f, body, bodies)
		}
	}
}

func described(body []byte, p *Part) string {
	return fmt.Sprintf("%s %q %q %d %t %s", p.Kind, p.CallID, p.Name, p.Tokens, p.IsError, p.Value.Of(body))
}

// checkRendered wants a message and its steps to become the same messages of another format.
func checkRendered(t testing.TB, f session.Format, body []byte, steps [][]byte) {
	t.Helper()
	asked := Stored{Format: session.AISDK, Body: []byte(`{"id":"u","role":"user","parts":[{"type":"text","text":"Go."}]}`)}
	whole, divided := []Stored{asked, {Format: session.AISDK, Body: body}}, []Stored{asked}
	for _, step := range steps {
		divided = append(divided, Stored{Format: session.AISDK, Body: step})
	}
	want, got := rendered(f, whole, Options{}).Bodies, rendered(f, divided, Options{}).Bodies
	if !bytes.Equal(bytes.Join(want, nil), bytes.Join(got, nil)) {
		t.Fatalf("%q is in %s\n%s\nits steps are\n%s", body, f, bytes.Join(want, []byte("\n")), bytes.Join(got, []byte("\n")))
	}
}
