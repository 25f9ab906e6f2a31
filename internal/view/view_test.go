package view_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

const messageTokens = 10

// said makes a message of Chat Completions out of a word: "u1" is the user's, "a2" the assistant's, "s3" the system's,
// "a4+x+y" one with the calls x and y, "-x" the result of x.
func said(word string) string {
	parts := strings.Split(word, "+")
	switch word[0] {
	case '-':
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"r"}`, word[1:])
	case 's':
		return fmt.Sprintf(`{"role":"system","content":%q}`, word)
	case 'u':
		return fmt.Sprintf(`{"role":"user","content":%q}`, word)
	}
	if len(parts) == 1 {
		return fmt.Sprintf(`{"role":"assistant","content":%q}`, word)
	}
	var calls []string
	for _, id := range parts[1:] {
		calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}`, id))
	}
	return fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[%s]}`, parts[0], strings.Join(calls, ","))
}

// stored makes a view of messages, each of ten tokens.
func stored(pinned int64, bodies ...string) *postgres.View {
	return storedAs(session.OpenAIChat, pinned, bodies...)
}

func storedAs(format session.Format, pinned int64, bodies ...string) *postgres.View {
	v := &postgres.View{Format: format, Pinned: pinned, Tail: []byte(strings.Join(bodies, ","))}
	v.LastSeq, v.Tokens = int64(len(bodies)), int64(len(bodies))*messageTokens
	var shapes []string
	for i := range bodies {
		shapes = append(shapes, fmt.Sprintf("%d\x1c%d\x1c%d", i+1, messageTokens, format.Number()))
	}
	v.TailShapes = []byte(strings.Join(shapes, "\x1e"))
	return v
}

// with puts a checkpoint before a view, a unit for each word, that leaves calls open.
func with(v *postgres.View, open string, words ...string) *postgres.View {
	var body []byte
	var list []compact.Unit
	for i, word := range words {
		if i > 0 {
			body = append(body, ',')
		}
		list = append(list, compact.Unit{Offset: len(body), FirstSeq: int64(i + 1), Messages: 1, Tokens: messageTokens})
		if !strings.HasPrefix(word, "{") {
			word = said(word)
		}
		body = append(body, word...)
	}
	v.Checkpoint, v.Body, v.Size, v.OpenCalls = 1, zframe.Compress(body), len(body), []byte(open)
	v.Units, _ = json.Marshal(list)
	v.Tokens += int64(len(words)) * messageTokens
	return v
}

var contents = regexp.MustCompile(`"content":"([^"]*)"`)

// TestWhatABoundedViewKeeps has for each log and number of messages (limit) the contents that a view with that limit keeps.
func TestWhatABoundedViewKeeps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		checkpoint string
		open       string
		log        string
		pinned     int64
		limit      int64
		want       string // "" if it cannot fit
	}{
		"the newest units that fit":                          {log: "u1 a2 u3 a4", limit: 3, want: "a2 u3 a4"},
		"all that there is":                                  {log: "u1 a2 u3 a4", limit: 4, want: "u1 a2 u3 a4"},
		"the system prompt at the head, whatever its age":    {log: "s1 u2 a3 u4", pinned: 1, limit: 2, want: "s1 u4"},
		"a call with its result":                             {log: "u1 a2+x -x u4", limit: 3, want: "a2 r u4"},
		"neither a call nor its result if they do not fit":   {log: "u1 a2+x -x u4", limit: 2, want: "u4"},
		"a user's word with the call that waited then":       {log: "u1 a2+x u3 u4 a5", limit: 3, want: "a5"},
		"a late result and all since its call":               {log: "u1 a2+x a3 u4 -x u6", limit: 5, want: "a2 r a3 u4 u6"},
		"an early result and all up to its call":             {log: "u1 u2 -x a4 a5+x a6", limit: 5, want: "u2 a4 a5 r a6"},
		"neither an early result nor its call by itself":     {log: "u1 u2 -x a4 a5+x a6", limit: 4, want: "a6"},
		"nothing between a call and a late result by itself": {log: "u1 a2+x a3 u4 -x u6", limit: 4, want: "u6"},
		"an id that repeats is answered by the nearest":      {log: "u1 a2+x a3+x -x u5", limit: 3, want: "a3 r u5"},
		"the newest unit, or it cannot fit":                  {log: "u1 a2+x -x", limit: 1, want: ""},
		"a checkpoint's newest units":                        {checkpoint: "u1 a2", log: "u3", limit: 2, want: "a2 u3"},
		"no result without the checkpoint of its call":       {checkpoint: "u1 a2+x", open: "x", log: "-x u4", limit: 3, want: "u4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bodies []string
			for _, word := range strings.Fields(test.log) {
				bodies = append(bodies, said(word))
			}
			v := stored(test.pinned, bodies...)
			if test.checkpoint != "" {
				v = with(v, test.open, strings.Fields(test.checkpoint)...)
			}
			request := view.Request{MaxTokens: test.limit * messageTokens, Pending: wire.KeepPending}
			made, notes, err := request.Make(t.Context(), v)
			if cannot := new(session.CannotFitError); test.want == "" {
				if !errors.As(err, &cannot) {
					t.Errorf("%v, want that it cannot fit", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range contents.FindAllStringSubmatch(string(made.Tail), -1) {
				got = append(got, m[1])
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("kept %v, want %s", got, test.want)
			}
			if made.Tokens != v.Tokens-notes.Omitted.Tokens || made.Tokens > request.MaxTokens {
				t.Errorf("%d of %d tokens, omitted %+v", made.Tokens, v.Tokens, notes.Omitted)
			}
		})
	}
}

// TestAProvidersOwnCompactionIsKeptAndCountsAlone bounds views of a log whose fourth message has a compaction.
func TestAProvidersOwnCompactionIsKeptAndCountsAlone(t *testing.T) {
	t.Parallel()
	log := []string{said("u1"), said("a2"), said("u3"), `{"role":"assistant","content":[{"type":"compaction","content":"c4"}]}`, said("u5"), said("a6"), said("u7")}
	for limit, want := range map[int64]string{0: "c4 u5 a6 u7", 40: "c4 u5 a6 u7", 30: "c4 u7", 20: "c4 u7", 10: ""} {
		checkpointed := with(storedAs(session.Anthropic, 0, log[4:]...), "", "u1", "a2", "u3", log[3])
		for _, v := range []*postgres.View{storedAs(session.Anthropic, 0, log...), checkpointed} {
			request := view.Request{MaxTokens: limit, Pending: wire.KeepPending}
			made, notes, err := request.Make(t.Context(), v)
			if cannot := new(session.CannotFitError); want == "" && errors.As(err, &cannot) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range contents.FindAllStringSubmatch(string(made.Body)+string(made.Tail), -1) {
				got = append(got, m[1])
			}
			if strings.Join(got, " ") != want || made.Tokens != 10*int64(len(got)) || notes.Repairs[0].Kind != "compacted" {
				t.Errorf("limit %d: %v of %d tokens, repairs %v, want %s", limit, got, made.Tokens, notes.Repairs, want)
			}
		}
	}
}

func TestAnAISDKMessageAnswersItsOwnCalls(t *testing.T) {
	t.Parallel()
	const user = `{"id":"u","role":"user","parts":[{"type":"text","text":"more"}]}`
	const tool = `{"id":"m","role":"assistant","parts":[` +
		`{"type":"tool-f","toolCallId":"x","state":"output-available","input":{},"output":"%d"}]}`
	v := storedAs(session.AISDK, 0, fmt.Sprintf(tool, 1), user, fmt.Sprintf(tool, 2))
	request := view.Request{MaxTokens: messageTokens, Pending: wire.KeepPending}
	made, notes, err := request.Make(t.Context(), v)
	if err != nil || notes.Omitted.Units != 2 || !strings.Contains(string(made.Tail), `"2"`) {
		t.Errorf("%+v, %v: an id that repeats ties two messages", notes, err)
	}
}

func TestAViewWhosePartsDoNotFitIsBroken(t *testing.T) {
	t.Parallel()
	missing, damaged := stored(0, said("u1"), said("u2")), with(stored(0, said("u3")), "", "u1", "u2")
	missing.TailShapes, _, _ = bytes.Cut(missing.TailShapes, []byte{0x1e})
	gap := stored(0, said("u1"), said("u2"))
	gap.TailShapes = []byte("1\x1e1")
	gap.LastSeq = 3
	damaged.Units = []byte(`[{"offset":0},{"offset":100000}]`)
	for name, v := range map[string]*postgres.View{
		"a message without a shape": missing, "a unit outside of the body": damaged, "a gap among messages without seqs": gap,
	} {
		request := view.Request{Format: session.Gemini, Pending: wire.KeepPending}
		if _, _, err := request.Make(t.Context(), v); !errors.As(err, new(*view.BrokenError)) {
			t.Errorf("%s: %v, want a BrokenError", name, err)
		}
	}
}

func TestSplitRefusesWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	for joined, want := range map[string]int{
		``: 0, `{"a":1}`: 1, `{"a":1},{"b":","}`: 2, `{"a":1},`: -1, `{"a"`: -1, `]`: -1,
	} {
		got, err := view.Split([]byte(joined))
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%s: %d messages, %v; want %d", joined, len(got), err, want)
		}
	}
}

func TestUnitsEndBeforeTheCommaOfTheNext(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":1},{"b":2},{"c":3}`)
	for name, test := range map[string]struct {
		offsets []int
		want    string
	}{
		"three":                             {[]int{0, 8, 16}, `{"a":1} {"b":2} {"c":3}`},
		"one of two messages":               {[]int{0, 16}, `{"a":1},{"b":2} {"c":3}`},
		"a body without units is one":       {nil, string(body)},
		"the first must begin the body":     {[]int{8, 16}, ""},
		"none begins before the one before": {[]int{0, 16, 8}, ""},
		"none begins behind the body":       {[]int{0, 99}, ""},
	} {
		var stored []compact.Unit
		for _, offset := range test.offsets {
			stored = append(stored, compact.Unit{Offset: offset})
		}
		list, err := view.Units(body, stored)
		var got []string
		for _, u := range list {
			got = append(got, string(u.Joined))
		}
		if (err != nil) != (test.want == "") || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
