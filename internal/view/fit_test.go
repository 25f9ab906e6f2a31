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
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
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
	v.TailBytes = int64(len(v.Tail))
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

// kinds are texts whose tokens are hard to estimate, of about a number of characters.
var kinds = map[string]func(rng *rand.Rand, n int) string{
	"code":         repeated("if err := f.read(ctx, &buf[i]); err != nil {\n\t\treturn fmt.Errorf(\"read %d: %w\", i, err)\n\t}\n"),
	"minified":     repeated("!function(e,t){for(var n=0,r=e.length;n<r;n++)t(e[n],n)||(e[n]=void 0)}(a.b,c=>d);"),
	"JSON":         repeated(`{"id":17,"tags":["a","b"],"price":18.5,"ok":true,"at":"2026-03-14T09:26:53Z"},`),
	"JSON in JSON": repeated(`{\\\"id\\\":\\\"17\\\",\\\"m\\\":{\\\"k\\\":[\\\"\\\\n\\\"]}}`),
	"logs":         repeated("2026-02-11T08:31:07.114Z WARN retry=3 host=db-2.internal:5432 err=\"refused\"\n"),
	"a table":      repeated("| 0.25 | 17.50 | yes | - |\n|------|-------|-----|---|\n"),
	"hex":          drawn("0123456789abcdef"), "base64": drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
	"UUIDs": func(rng *rand.Rand, n int) (s string) {
		for len(s) < n {
			s += fmt.Sprintf("%08x-%04x-4%03x-%012x\n", rng.Uint32(), rng.IntN(1<<16), rng.IntN(1<<12), rng.IntN(1<<48))
		}
		return s
	},
	"digits": drawn("0123456789"), "letters": drawn("abcdefghijklmnopqrstuvwxyz"), "one letter": repeated("z"),
	"newlines": repeated("\n"), "white space": drawn(" \t\n"), "marks": drawn("!?.,;:-_=+*/\\|(){}[]<>#@$%^&~`"),
	"mathematics": between(0x2200, 0x22ff), "boxes": between(0x2500, 0x257f), "emoji": between(0x1f300, 0x1f64f),
	"Chinese": between(0x4e00, 0x9fff), "Korean": between(0xac00, 0xd7a3), "Arabic": between(0x620, 0x64a), "Hindi": between(0x905, 0x939),
	"Thai": between(0xe01, 0xe2e), "Georgian": between(0x10d0, 0x10f0), "Ethiopic": between(0x1200, 0x1357), "cuneiform": between(0x12000, 0x12399),
}

func repeated(text string) func(*rand.Rand, int) string {
	return func(_ *rand.Rand, n int) string { return strings.Repeat(text, n/len(text)+1) }
}

func drawn(letters string) func(*rand.Rand, int) string {
	return func(rng *rand.Rand, n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = letters[rng.IntN(len(letters))]
		}
		return string(text)
	}
}

// between draws characters from a block of Unicode, with a blank between some.
func between(first, last rune) func(*rand.Rand, int) string {
	return func(rng *rand.Rand, n int) string {
		text := make([]rune, n)
		for i := range text {
			if text[i] = first + rng.Int32N(last-first+1); rng.IntN(9) == 0 {
				text[i] = ' '
			}
		}
		return string(text)
	}
}

// TestNoTextHidesItsTokens makes views fit of which no usage is known: by the vocabulary, none of any kind of text may
// have more tokens than the window, and not much less either.
func TestNoTextHidesItsTokens(t *testing.T) {
	t.Parallel()
	for kind, text := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			for _, window := range []int64{1000, 8000} {
				bodies := [][]byte{[]byte(said("u"))}
				for i := range 12 {
					id := string(rune('a' + i))
					bodies = append(bodies, []byte(said("a+"+id)), fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":%s}`, id, rawjson.Quote(nil, []byte(text(rng, int(window))))),
						fmt.Appendf(nil, `{"role":"user","content":%s}`, rawjson.Quote(nil, []byte(text(rng, int(window)/10)))))
				}
				stored := of(t, session.OpenAIChat, window, bodies...)
				stored.Guess = 1
				request := view.Request{Pending: wire.KeepPending, Fit: fits}
				made, _, err := request.Make(t.Context(), stored)
				if err != nil {
					t.Fatal(err)
				}
				if n := counted(t, session.OpenAIChat, made); n > window || n < window/2 {
					t.Errorf("%d tokens in a window of %d, %d by the estimate", n, window, served(t, session.OpenAIChat, made))
				}
				if stored.Tokens <= window && request.AsStored(stored) {
					t.Errorf("what fits by the estimate is served as it is, whatever it is")
				}
			}
		})
	}
}

// counted returns the tokens of a made view by the vocabulary.
func counted(t *testing.T, format session.Format, made *postgres.View) (sum int64) {
	t.Helper()
	bodies, err := view.Split(made.Tail)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		facts, err := wire.Count(format, body, func(text string) (int, error) { return tokens.Count(t.Context(), "o200k", text) })
		if err != nil {
			t.Fatal(err)
		}
		sum += int64(facts.Tokens)
	}
	return sum
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
	data := "iVBORw0KGgoAAAAN" + strings.Repeat("aGVsbG8gd29ybGQg", 1200)
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
