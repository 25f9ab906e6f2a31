package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// FuzzValidate takes lists of messages, one a line, that can be stored, whatever they say. Validate judges each, and
// finds nothing in what Render makes of it, in any format.
func FuzzValidate(f *testing.F) {
	for number, format := range session.Formats() {
		for _, x := range fixtures[format] {
			if len(x.bodies) < 10 {
				f.Add(number, []byte(strings.Join(x.bodies, "\n")))
			}
		}
	}
	f.Add(0, []byte(`{"role":"0","tool_calls":[{}]}`))
	f.Add(2, []byte(`{"type":"reasoning","id":"r"}`))
	f.Add(1, []byte(`{"role":"x","content":[{},{"type":"redacted_thinking","data":{}},{"type":0}]}`))
	f.Add(3, []byte(`{"role":"model","parts":[{"functionCall":{}}]}`+"\n"+`{"parts":[{"":""}]}`))
	f.Add(0, []byte(`{"role":"assistant","function_call":{"name":""}}`))
	f.Add(2, []byte(`{"type":"function_call","id":""}`))
	f.Add(3, []byte(`{"role":"model","parts":[{"functionCall":{},"thoughtSignature":""}]}`))
	f.Add(4, []byte(`{"role":"0","parts":[{"type":"tool-"}]}`+"\n"+`{"role":"0"}`))
	f.Add(3, []byte(`{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`+"\n"+`{"parts":[{"functionResponse":{"name":"f"}},{}]}`))
	f.Fuzz(func(t *testing.T, number int, lines []byte) {
		formats := session.Formats()
		if number < 0 || number >= len(formats) {
			return
		}
		var view []Stored
		for body := range bytes.SplitSeq(lines, []byte("\n")) {
			if rawjson.Check(body, rawjson.Limits{Depth: 64}) != nil {
				return
			}
			if _, err := Inspect(formats[number], body); err != nil {
				return
			}
			view = append(view, Stored{Format: formats[number], Body: body, Seq: int64(len(view) + 1)})
		}
		for _, target := range formats {
			made := rendered(target, view, Options{}).Bodies
			for _, v := range validated(target, made, Options{}) {
				t.Fatalf("%s of %q is %q: message %d breaks %s: %s", target, lines, made, v.Message, v.Rule, v.Detail)
			}
		}
	})
}
