package wire_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/provider"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// longLogs are logs of one kind of message, or of one kind of pair, from end to end.
var longLogs = map[string][]string{
	"users":      {`{"role":"user","content":"question %d"}`},
	"systems":    {`{"role":"system","content":"rule %d"}`},
	"developers": {`{"role":"developer","content":"rule %d"}`},
	"assistants": {`{"role":"assistant","content":"answer %d"}`},
	"calls":      {`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
	"results":    {`{"role":"tool","tool_call_id":"c%d","content":"result"}`},
	"turns":      {`{"role":"user","content":"question %d"}`, `{"role":"assistant","content":"answer %d"}`},
	"pairs": {`{"role":"assistant","content":null,"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c%[1]d","content":"result"}`},
	"pairs of one id": {`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f%d","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"result %d"}`},
	"late results": {`{"role":"assistant","content":null,"tool_calls":[{"id":"c%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"user","content":"and %d?"}`, `{"role":"tool","tool_call_id":"c%[1]d","content":"result"}`},
	"images": {`{"role":"user","content":[{"type":"text","text":"look %d"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}`},
}

func longLog(kinds []string, n int) (log []wire.Stored) {
	for i := range n {
		for _, kind := range kinds {
			log = append(log, wire.Stored{Seq: int64(len(log) + 1), Format: session.OpenAIChat, Body: fmt.Appendf(nil, kind, i)})
		}
	}
	return log
}

// TestRenderingTakesMemoryInProportion renders logs of four times as many messages: what copies all that is before a
// message, for each message, takes sixteen times as much. It measures what the process allocates, so nothing runs
// beside it.
func TestRenderingTakesMemoryInProportion(t *testing.T) { //nolint:paralleltest // see above
	const few, many, limit = 60, 240, 6
	for name, kinds := range longLogs {
		for _, target := range session.Formats() {
			for _, from := range slices.Compact([]session.Format{session.OpenAIChat, target}) {
				for _, dialect := range append(provider.DialectsOf(target), "") {
					o := wire.Options{Dialect: dialect}
					before, after := rendered(t, longLog(kinds, few), from, target, o), rendered(t, longLog(kinds, many), from, target, o)
					if after > limit*before {
						t.Errorf("%s in %s for %s %s: %d bytes for %d, %d for %d", name, from, target, dialect, before, few, after, many)
					}
				}
			}
		}
	}
}

// rendered returns how many bytes it takes to render a log that was rendered in a format before.
func rendered(t *testing.T, log []wire.Stored, from, target session.Format, o wire.Options) uint64 {
	t.Helper()
	if from != session.OpenAIChat {
		log = stored(from, wiretest.Render(from, log, wire.Options{}).Bodies)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wiretest.Render(target, log, o)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
