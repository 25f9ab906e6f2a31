package view_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// fits makes views fit whose log has no refs of single parts.
var fits = &view.Fit{Parts: func(int64) ([]readback.Part, error) { return nil, nil }}

// of makes a view of messages as they were estimated, with a window.
func of(t *testing.T, format session.Format, window int64, bodies ...[]byte) *postgres.View {
	t.Helper()
	v := &postgres.View{Format: format, Window: window, Room: window}
	var shapes, texts []string
	var inspected []wire.Facts
	for _, body := range bodies {
		facts, err := wire.Inspect(format, body)
		if err != nil {
			t.Fatal(err)
		}
		inspected = append(inspected, facts)
		v.Tokens += int64(facts.Tokens)
		texts = append(texts, string(body))
		shapes = append(shapes, fmt.Sprintf("%d", format.Number()))
	}
	v.LastSeq, v.Pinned = int64(len(bodies)), int64(wire.PinnedHead(inspected))
	n := v.Separate()
	v.System, v.SystemShapes = []byte(strings.Join(texts[:n], ",")), []byte(strings.Join(shapes[:n], "\x1e"))
	v.Tail, v.TailShapes = []byte(strings.Join(texts[n:], ",")), []byte(strings.Join(shapes[n:], "\x1e"))
	return v
}

// served returns the tokens of a made view by the estimate.
func served(t *testing.T, format session.Format, made *postgres.View) (sum int64) {
	t.Helper()
	for _, joined := range [][]byte{made.System, made.Tail} {
		bodies, err := view.Split(joined)
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range bodies {
			facts, err := wire.Inspect(format, body)
			if err != nil {
				t.Fatal(err)
			}
			sum += int64(facts.Tokens)
		}
	}
	return sum
}

// TestAFittedViewNeverExceedsItsWindow makes views of arbitrary sessions in every format for windows of every size.
func TestAFittedViewNeverExceedsItsWindow(t *testing.T) {
	t.Parallel()
	made, refused := 0, 0
	for seed := range uint64(40) {
		for _, own := range session.Formats() {
			rng := rand.New(rand.NewPCG(seed, 7))
			bodies := compacttest.Session(rng, own, compacttest.Options{Messages: 30, Wild: seed%2 == 1})
			for _, target := range session.Formats() {
				window := int64(100 + rng.IntN(4000))
				request := view.Request{Format: target, Pending: wire.KeepPending, Fit: fits}
				stored := of(t, own, window, bodies...)
				if seed%4 == 3 {
					stored.Tokens = stored.Tokens * 3 / 2 // as another tokenizer counts
				}
				got, notes, err := request.Make(t.Context(), stored)
				exceeded := new(session.WindowExceededError)
				if errors.As(err, &exceeded) {
					if refused++; exceeded.Minimum <= window || len(exceeded.Largest) == 0 {
						t.Errorf("seed %d, %s as %s: %+v", seed, own, target, exceeded)
					}
					continue
				}
				if err != nil {
					t.Fatalf("seed %d, %s as %s with a window of %d: %v", seed, own, target, window, err)
				}
				made++
				if n := served(t, target, got); n > window || got.Tokens > window || got.Tokens < n {
					t.Errorf("seed %d, %s as %s: %d tokens, %d said, in a window of %d", seed, own, target, n, got.Tokens, window)
				}
				if n := served(t, target, got); seed%4 == 3 && (got.Tokens < n*149/100 || got.Tokens > n*152/100+2) {
					t.Errorf("seed %d, %s as %s: %d tokens, %d said, which are half as many again", seed, own, target, n, got.Tokens)
				}
				checkNotes(t, stored, notes)
			}
		}
	}
	if made < 500 || refused < 5 || refused > made/4 {
		t.Errorf("%d views were made, %d refused", made, refused)
	}
}

func checkNotes(t *testing.T, stored *postgres.View, notes view.Notes) {
	t.Helper()
	for _, c := range notes.Cut {
		if c.Ref == "" || c.Seq < 1 || c.Seq > stored.LastSeq || c.TokensAfter >= c.TokensBefore {
			t.Errorf("%+v", c)
		}
	}
	if o := notes.Omitted; (o.Units > 0) != (len(o.Refs) > 0) {
		t.Errorf("%+v", o)
	}
	for _, ref := range notes.Omitted.Refs {
		if r, ok := session.ParseMessagesRef(ref); !ok || r.Last > stored.LastSeq {
			t.Errorf("%+v", notes.Omitted)
		}
	}
}

// big returns a text of about this number of tokens.
func big(tokens int) string { return strings.Repeat("some words of a text. ", tokens/5) }

func answer(id string, tokens int) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, big(tokens))
}

// TestWhatIsCutFirst has the parts of a log that are cut for a window of 2,000 tokens.
func TestWhatIsCutFirst(t *testing.T) {
	t.Parallel()
	text := func(role string, tokens int) string {
		return fmt.Sprintf(`{"role":%q,"content":%q}`, role, big(tokens))
	}
	arguments := func(tokens int) string {
		return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":%q}}]}`,
			fmt.Sprintf(`{"a":%q}`, big(tokens)))
	}
	for name, test := range map[string]struct {
		log     []string
		want    string // kind and seq of each cut
		omitted int
	}{
		"the largest results, to one level":             {[]string{said("u"), said("a+x+y+z"), answer("x", 2000), answer("y", 100), answer("z", 1500)}, "result 3, result 5", 0},
		"results before the user's word":                {[]string{text("user", 1000), said("a+x"), answer("x", 3000)}, "result 3", 0},
		"arguments when results are not enough":         {[]string{said("u"), arguments(3000), answer("x", 250)}, "call 2, result 3", 0},
		"the user's word after them":                    {[]string{text("user", 3000), arguments(500), answer("x", 500)}, "text 1, call 2, result 3", 0},
		"the system prompt last":                        {[]string{text("system", 3000), text("user", 500)}, "text 1, text 2", 0},
		"the border, and not the small unit before it":  {[]string{said("u"), said("a"), said("u"), said("a+x"), answer("x", 4000), said("u"), said("a")}, "result 5", 0},
		"not the border if it cannot be cut enough":     {[]string{said("u"), text("assistant", 3000), said("u"), said("a")}, "", 2},
		"nothing where leaving units out is enough":     {[]string{said("u"), text("assistant", 1000), said("u"), text("assistant", 1200)}, "", 2},
		"the newest user's message stays in any format": {[]string{text("user", 900), text("assistant", 800), text("assistant", 700)}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bodies [][]byte
			for _, m := range test.log {
				bodies = append(bodies, []byte(m))
			}
			request := view.Request{Pending: wire.KeepPending, Fit: fits}
			made, notes, err := request.Make(t.Context(), of(t, session.OpenAIChat, 2000, bodies...))
			if err != nil {
				t.Fatal(err)
			}
			if got := cutsOf(notes.Cut); got != test.want || notes.Omitted.Units != test.omitted || made.Tokens > 2000 {
				t.Errorf("cut %q, want %q; %+v omitted; %d tokens", got, test.want, notes.Omitted, made.Tokens)
			}
			if test.want != "" && made.Tokens < 1500 {
				t.Errorf("only %d tokens are left", made.Tokens)
			}
			for _, c := range notes.Cut {
				if c.TokensAfter < 150 {
					t.Errorf("too little is left to be read: %+v", c)
				}
			}
		})
	}
}

func cutsOf(list []protocol.Cut) string {
	var cuts []string
	for _, c := range list {
		cuts = append(cuts, fmt.Sprint(c.Kind, " ", c.Seq))
	}
	return strings.Join(cuts, ", ")
}

// TestMediaAreKeptWhole has results with text and an image, in which the text is cut, and one whose image is inside its
// JSON, which is kept.
func TestMediaAreKeptWhole(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("aGVsbG8gd29ybGQg", 1200)
	user := `{"role":"user","content":"look"}`
	anthropic := []string{user, `{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]}`,
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":%q},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}]}`, big(5000), data)}
	sdk := func(output string) []string {
		return []string{`{"id":"1","role":"user","parts":[{"type":"text","text":"look"}]}`,
			`{"id":"2","role":"assistant","parts":[{"type":"tool-f","toolCallId":"x","state":"output-available","input":{},"output":` + output + `}]}`}
	}
	image := fmt.Sprintf(`{"type":"media","mediaType":"image/png","data":%q}`, data)
	content := fmt.Sprintf(`{"type":"content","value":[{"type":"text","text":%q},%s]}`, "seen", image)
	for name, test := range map[string]struct {
		format session.Format
		log    []string
		cut    bool
	}{
		"beside a text":   {session.Anthropic, anthropic, true},
		"inside of JSON":  {session.AISDK, sdk(content), false},
		"a list of JSON":  {session.AISDK, sdk(`[{"a":"` + big(5000) + `"}]`), true},
		"an object":       {session.AISDK, sdk(`{"a":"` + big(5000) + `"}`), true},
		"many of a batch": {session.Anthropic, append(anthropic[:2:2], strings.Replace(anthropic[2], big(5000), big(9000), 1)), true},
	} {
		var bodies [][]byte
		for _, m := range test.log {
			bodies = append(bodies, []byte(m))
		}
		request := view.Request{Pending: wire.KeepPending, Fit: fits}
		if !test.cut {
			_, notes, err := request.Make(t.Context(), of(t, test.format, 1000, bodies...))
			if exceeded := new(session.WindowExceededError); !errors.As(err, &exceeded) || exceeded.Largest[0] != 2 {
				t.Errorf("%s: %v, cut %+v", name, err, notes.Cut)
			}
			continue
		}
		made, notes, err := request.Make(t.Context(), of(t, test.format, 2500, bodies...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if isKept := strings.Contains(string(made.Tail), data); isKept != strings.Contains(strings.Join(test.log, ""), data) || notes.Cut == nil {
			t.Errorf("%s: the image is there: %t; cut %+v", name, isKept, notes.Cut)
		}
	}
}

func TestARefIsThatOfThePart(t *testing.T) {
	t.Parallel()
	tool := fmt.Sprintf(`{"type":"tool-f","toolCallId":"x","state":"output-available","input":{},"output":%q}`, big(3000))
	stored := of(t, session.AISDK, 2000, []byte(`{"id":"1","role":"user","parts":[{"type":"text","text":"look"}]}`),
		[]byte(`{"id":"2","role":"assistant","parts":[`+tool+","+tool+`]}`))
	parts := []readback.Part{{Kind: wire.Call, CallID: "x", Ref: "call"}, {Kind: wire.Result, CallID: "x", Ref: "first"},
		{Kind: wire.Result, CallID: "y", Ref: "other"}, {Kind: wire.Result, CallID: "x", Ref: "second"}}
	for known, want := range map[int]string{4: "first second", 3: "first m2", 0: "m2 m2"} {
		fit := &view.Fit{Parts: func(int64) ([]readback.Part, error) { return parts[:known], nil }}
		request := view.Request{Pending: wire.KeepPending, Fit: fit}
		_, notes, err := request.Make(t.Context(), stored)
		if err != nil || len(notes.Cut) != 2 || notes.Cut[0].Ref+" "+notes.Cut[1].Ref != want {
			t.Errorf("with %d parts: %+v, %v, want %s", known, notes.Cut, err, want)
		}
	}
	lost := errors.New("the database does not answer")
	request := view.Request{Pending: wire.KeepPending, Fit: &view.Fit{Parts: func(int64) ([]readback.Part, error) { return nil, lost }}}
	if _, _, err := request.Make(t.Context(), stored); !errors.Is(err, lost) {
		t.Errorf("%v, want %v", err, lost)
	}
}
