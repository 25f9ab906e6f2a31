package wire

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// speech writes the messages of a format. A call and its result have the id of their number.
type speech struct {
	user    func(n int) string
	says    func(n int) string
	calls   func(ids ...int) []string
	results func(ids ...int) []string
}

// elements writes one element for each id.
func elements(format string, ids []int) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strings.ReplaceAll(format, "#", fmt.Sprint(id))
	}
	return strings.Join(list, ",")
}

func sentence(format string) func(n int) string {
	return func(n int) string { return elements(format, []int{n}) }
}

// joint writes one message for all ids, and disjoint one for each.
func joint(format, element string) func(ids ...int) []string {
	return func(ids ...int) []string { return []string{fmt.Sprintf(format, elements(element, ids))} }
}

func disjoint(format string) func(ids ...int) (list []string) {
	return func(ids ...int) (list []string) {
		for _, id := range ids {
			list = append(list, elements(format, []int{id}))
		}
		return list
	}
}

var speeches = map[session.Format]speech{
	session.OpenAIChat: {
		user:    sentence(`{"role":"user","content":"go on #"}`),
		says:    sentence(`{"role":"assistant","content":"so it is #"}`),
		calls:   joint(`{"role":"assistant","content":null,"tool_calls":[%s]}`, `{"id":"call_#","type":"function","function":{"name":"f","arguments":"{\"n\":#}"}}`),
		results: disjoint(`{"role":"tool","tool_call_id":"call_#","content":"done #"}`),
	},
	session.OpenAIResponses: {
		user:    sentence(`{"role":"user","content":"go on #"}`),
		says:    sentence(`{"type":"message","id":"msg_#","role":"assistant","content":[{"type":"output_text","text":"so it is #"}]}`),
		calls:   disjoint(`{"type":"function_call","call_id":"call_#","name":"f","arguments":"{\"n\":#}"}`),
		results: disjoint(`{"type":"function_call_output","call_id":"call_#","output":"done #"}`),
	},
	session.Anthropic: {
		user:    sentence(`{"role":"user","content":"go on #"}`),
		says:    sentence(`{"role":"assistant","content":[{"type":"text","text":"so it is #"}]}`),
		calls:   joint(`{"role":"assistant","content":[%s]}`, `{"type":"tool_use","id":"call_#","name":"f","input":{"n":#}}`),
		results: joint(`{"role":"user","content":[%s]}`, `{"type":"tool_result","tool_use_id":"call_#","content":"done #"}`),
	},
	session.Gemini: {
		user:    sentence(`{"role":"user","parts":[{"text":"go on #"}]}`),
		says:    sentence(`{"role":"model","parts":[{"text":"so it is #"}]}`),
		calls:   joint(`{"role":"model","parts":[%s]}`, `{"functionCall":{"id":"call_#","name":"f","args":{"n":#}}}`),
		results: joint(`{"role":"user","parts":[%s]}`, `{"functionResponse":{"id":"call_#","name":"f","response":{"output":"done #"}}}`),
	},
	session.AISDK: {
		user:    sentence(`{"id":"u#","role":"user","parts":[{"type":"text","text":"go on #"}]}`),
		says:    sentence(`{"id":"s#","role":"assistant","parts":[{"type":"text","text":"so it is #"}]}`),
		calls:   joint(`{"id":"c","role":"assistant","parts":[%s]}`, `{"type":"tool-f","toolCallId":"call_#","state":"input-available","input":{"n":#}}`),
		results: joint(`{"id":"r","role":"assistant","parts":[%s]}`, `{"type":"tool-f","toolCallId":"call_#","state":"output-available","input":{"n":#},"output":"done #"}`),
	},
}

// numbered returns the numbers from 1 to n.
func numbered(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

// perItem returns what write writes of each number from 1 to n.
func perItem(n int, write func(i int) []string) (list []string) {
	for i := range n {
		list = append(list, write(i+1)...)
	}
	return list
}

// growing are conversations that have n of something.
var growing = map[string]func(s speech, n int) []string{
	"users": func(s speech, n int) []string {
		return perItem(n, func(i int) []string { return []string{s.user(i)} })
	},
	"assistants": func(s speech, n int) []string {
		return perItem(n, func(i int) []string { return []string{s.says(i)} })
	},
	"calls without answers": func(s speech, n int) []string {
		return perItem(n, func(i int) []string { return s.calls(i) })
	},
	"results without calls": func(s speech, n int) []string {
		return perItem(n, func(i int) []string { return s.results(i) })
	},
	"call and result in turn": func(s speech, n int) []string {
		return perItem(n, func(i int) []string { return append(s.calls(i), s.results(i)...) })
	},
	"turns": func(s speech, n int) []string {
		return perItem(n, func(i int) []string {
			return append(append(append([]string{s.user(i)}, s.calls(i)...), s.results(i)...), s.says(i))
		})
	},
	"all calls, then all results": func(s speech, n int) []string {
		return append(perItem(n, func(i int) []string { return s.calls(i) }),
			perItem(n, func(i int) []string { return s.results(i) })...)
	},
	"results in the other order, a user between": func(s speech, n int) []string {
		list := perItem(n, func(i int) []string { return s.calls(i) })
		return append(append(list, s.user(0)), perItem(n, func(i int) []string { return s.results(n + 1 - i) })...)
	},
	"one message of calls, one of results": func(s speech, n int) []string {
		return append(s.calls(numbered(n)...), s.results(numbered(n)...)...)
	},
	"one message of results without calls": func(s speech, n int) []string { return s.results(numbered(n)...) },
	"calls of one id": func(s speech, n int) []string {
		return perItem(n, func(int) []string { return append(s.calls(1), s.results(1)...) })
	},
	"open calls of one id": func(s speech, n int) []string {
		return perItem(n, func(int) []string { return s.calls(1) })
	},
	"users and calls": func(s speech, n int) []string {
		return perItem(n, func(i int) []string { return append(s.calls(i), s.user(i)) })
	},
}

// manyParts are single messages of n parts of several kinds.
var manyParts = map[string]struct {
	format  session.Format
	message string
	parts   []string // in turn
}{
	"results and texts": {session.Anthropic, `{"role":"user","content":[%s]}`, []string{
		`{"type":"tool_result","tool_use_id":"call_#","content":"done #"}`, `{"type":"text","text":"and #"}`}},
	"texts and calls": {session.Anthropic, `{"role":"assistant","content":[%s]}`, []string{
		`{"type":"text","text":"and #"}`, `{"type":"tool_use","id":"call_#","name":"f","input":{}}`}},
	"thoughts and calls": {session.Anthropic, `{"role":"assistant","content":[%s]}`, []string{
		`{"type":"thinking","thinking":"hm #","signature":"s"}`, `{"type":"tool_use","id":"call_#","name":"f","input":{}}`}},
	"steps": {session.AISDK, `{"id":"1","role":"assistant","parts":[%s]}`, []string{
		`{"type":"step-start"}`, `{"type":"text","text":"and #"}`,
		`{"type":"tool-f","toolCallId":"call_#","state":"output-available","input":{},"output":"done #"}`}},
	"responses and texts": {session.Gemini, `{"role":"user","parts":[%s]}`, []string{
		`{"functionResponse":{"id":"call_#","name":"f","response":{"output":"done #"}}}`, `{"text":"and #"}`}},
	"calls of one name": {session.Gemini, `{"role":"model","parts":[%s]}`, []string{
		`{"functionCall":{"name":"f","args":{"n":#}}}`}},
	"legacy ids": {session.OpenAIChat, `{"role":"assistant","content":null,"tool_calls":[%s]}`, []string{
		`{"id":"function:f","function":{"name":"f","arguments":"{}"}}`}},
	"images in a result": {session.Anthropic, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[%s]}]}`,
		[]string{`{"type":"text","text":"#"}`, `{"type":"image","source":{"type":"url","url":"https://a.b/#"}}`}},
	"cache marks": {session.Anthropic, `{"role":"user","content":[%s]}`, []string{
		`{"type":"text","text":"#","cache_control":{"type":"ephemeral"}}`}},
}

// growingViews returns what makes conversations of n messages or parts, by name.
func growingViews() map[string]func(n int) []Stored {
	views := map[string]func(n int) []Stored{}
	for f, s := range speeches {
		for name, write := range growing {
			views[name+" in "+string(f)] = func(n int) []Stored { return storedAs(f, write(s, n)) }
		}
	}
	for name, m := range manyParts {
		views["a message of "+name] = func(n int) []Stored {
			return storedAs(m.format, []string{fmt.Sprintf(m.message, strings.Join(perItem(n, func(i int) []string {
				return []string{elements(m.parts[i%len(m.parts)], []int{i})}
			}), ","))})
		}
	}
	return views
}

func storedAs(f session.Format, bodies []string) []Stored {
	view := make([]Stored, len(bodies))
	for i, body := range bodies {
		view[i] = Stored{Format: f, Body: []byte(body), Seq: int64(i + 1)}
	}
	return view
}

// passes are all that is done with a whole view.
var passes = map[string]func(ctx context.Context, target session.Format, view []Stored){
	"Render": func(ctx context.Context, target session.Format, view []Stored) {
		for _, pending := range []Pending{KeepPending, SynthesizePending, DropPending} {
			_, _ = Render(ctx, target, view, Options{Pending: pending, Model: "m", Author: "n"})
		}
	},
	"Translate": func(ctx context.Context, target session.Format, view []Stored) {
		_, _ = Translate(ctx, target, view)
	},
	"Validate": func(ctx context.Context, target session.Format, view []Stored) {
		if view[0].Format == target {
			_, _ = Validate(ctx, target, bodiesOf(view), Options{Pending: SynthesizePending})
		}
	},
	"FastValidator": func(_ context.Context, target session.Format, view []Stored) {
		if view[0].Format != target {
			return
		}
		v := NewFastValidator(target)
		for i := range view {
			facts, _ := Inspect(view[i].Format, view[i].Body)
			shape := ShapeOf(view[i].Format, &facts)
			v.Add(&shape)
		}
		v.State()
	},
}

func bodiesOf(view []Stored) [][]byte {
	bodies := make([][]byte, len(view))
	for i := range view {
		bodies[i] = view[i].Body
	}
	return bodies
}

// TestTheWorkForAViewGrowsWithTheView counts bytes and allocations, of which ten times as many messages must take ten
// times as many, and some more for lists that grow by a quarter. It is not parallel: it counts those of the whole
// process. BenchmarkGrowingViews shows the time.
func TestTheWorkForAViewGrowsWithTheView(t *testing.T) {
	const short, long, growth = 40, 400, 16 // what is quadratic takes 60 to 100 times as much
	views := growingViews()
	for n, name := range slices.Sorted(maps.Keys(views)) {
		few, many := views[name](short), views[name](long)
		for i, target := range session.Formats() {
			if testing.Short() && target != few[0].Format && (n+i)%3 > 0 {
				continue // each view as what it is, and in one or two of the other formats
			}
			for pass, do := range passes {
				bytesFew, allocsFew := workOf(func() { do(t.Context(), target, few) })
				bytesMany, allocsMany := workOf(func() { do(t.Context(), target, many) })
				if bytesMany > growth*max(bytesFew, 50_000) || allocsMany > growth*max(allocsFew, 100) {
					t.Errorf("%s of %s as %s: %d of them take %d bytes in %d allocations, %d take %d in %d", pass, name,
						target, short, bytesFew, allocsFew, long, bytesMany, allocsMany)
				}
			}
		}
	}
}

func workOf(do func()) (size, allocs uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
}

func BenchmarkGrowingViews(b *testing.B) {
	for name, write := range growingViews() {
		for _, n := range []int{1000, 10_000} {
			view := write(n)
			for _, target := range session.Formats() {
				for pass, do := range passes {
					b.Run(fmt.Sprintf("%s/%s/%s/%d", pass, name, target, n), func(b *testing.B) {
						for b.Loop() {
							do(b.Context(), target, view)
						}
					})
				}
			}
		}
	}
}

// untilAsked is a context that ends when it has been asked a number of times whether it has.
type untilAsked struct {
	context.Context
	left int
}

func (c *untilAsked) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestWhoeverLeavesStopsTheWorkForAView wants every pass to ask at each message whether anyone still waits, and to
// stop at each place where it asks.
func TestWhoeverLeavesStopsTheWorkForAView(t *testing.T) {
	t.Parallel()
	const messages = 20
	passes := map[string]func(ctx context.Context, target session.Format, view []Stored) error{
		"Render": func(ctx context.Context, target session.Format, view []Stored) error {
			_, err := Render(ctx, target, view, Options{})
			return err
		},
		"Translate": func(ctx context.Context, target session.Format, view []Stored) error {
			_, err := Translate(ctx, target, view)
			return err
		},
		"Validate": func(ctx context.Context, target session.Format, view []Stored) error {
			_, err := Validate(ctx, view[0].Format, bodiesOf(view), Options{})
			return err
		},
	}
	for f, s := range speeches {
		view := storedAs(f, growing["turns"](s, messages/4))
		for _, target := range session.Formats() {
			for name, pass := range passes {
				all := &untilAsked{t.Context(), 1 << 30}
				if err := pass(all, target, view); err != nil {
					t.Fatal(err)
				}
				asked := 1<<30 - all.left
				if asked < len(view) {
					t.Errorf("%s of %d messages of %s as %s asks %d times", name, len(view), f, target, asked)
				}
				for n := range asked {
					if err := pass(&untilAsked{t.Context(), n}, target, view); err != context.Canceled {
						t.Errorf("%s of %s as %s goes on after it was asked to stop %d times: %v", name, f, target, n, err)
					}
				}
			}
		}
	}
}
