package replay

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextsAreNormalisedAlikeInAnyJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a plain text", "two\nlines\tand \"quotes\"", `a regular\.expression \d+`, "ünï→", `C:\new\table`, "",
	} {
		nested := text
		for depth := range 3 {
			quoted, err := json.Marshal(nested)
			if err != nil {
				t.Fatal(err)
			}
			nested = string(quoted)
			got := strings.Trim(normalised(nested), `"`)
			if want := strings.Trim(normalised(text), `"`); got != want {
				t.Errorf("%q at depth %d is %q, not %q", text, depth+1, got, want)
			}
		}
	}
}

func TestAMatcherFindsWhatASearchFinds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab_/."[random.IntN(5)]
		}
		return string(b)
	}
	for range 200 {
		text := letters(300)
		var patterns []pattern
		for i := range 40 {
			p := letters(4 + random.IntN(5))
			if i%2 == 0 {
				from := random.IntN(280)
				p = text[from : from+4+random.IntN(10)]
			}
			patterns = append(patterns, pattern{p, false, int32(i)})
		}
		found := newBits(len(patterns))
		newMatcher(patterns, []byte(text)).scan([]byte(text), found)
		for i := range patterns {
			if got, want := found.has(int32(i)), strings.Contains(text, patterns[i].text); got != want {
				t.Fatalf("%q in %q: %v, not %v", patterns[i].text, text, got, want)
			}
		}
	}
}

func TestAWordStandsAlone(t *testing.T) {
	t.Parallel()
	m := newMatcher([]pattern{{"read_all", true, 0}, {"/lib/", true, 1}}, nil)
	for text, want := range map[string][]int32{
		"x.read_all(y)": {0}, "read_all": {0}, "pread_all": nil, "read_alls": nil, "read_all2 and read_all": {0},
		"usr/lib/x": {1},
	} {
		found := newBits(2)
		m.scan([]byte(text), found)
		if diff := cmp.Diff(want, found.list()); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestWhatACallUses(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string][]string{
		`{"file_path":"/srv/app/internal/api/server.go"}`:                      {"path api/server.go"},
		`"{\"command\":\"grep -rn 'no such key' pkg/ | head -20\"}"`:           {"quoted no such key"},
		`{"command":"gh pr view 16923 --json state && git show 9f3a2bc1"}`:     {"number 16923", "id 9f3a2bc1"},
		`{"pattern":"readHistory","path":"."}`:                                 {"id readHistory"},
		`{"old_string":"a := 1\n\tb := 2","new_string":"see lib/old/x.go"}`:    {"quoted a := 1 b := 2", "path old/x.go"},
		`{"content":"func makeThing() { useOther(123456) }","path":"main.go"}`: {"path main.go"},
		`{"text":"just words, nothing else"}`:                                  nil,
		`not JSON but server/main.go`:                                          {"path server/main.go"},
	} {
		var got []string
		for _, u := range stringsOf([]byte(arguments)).list {
			got = append(got, u.kind.String()+" "+u.text)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", arguments, diff)
		}
	}
}

func TestTheReportAsFiles(t *testing.T) {
	t.Parallel()
	outcomes := invented()
	outcomes = append(outcomes, Outcome{Contender: `a <"b">`, Window: 10_000, LogTokens: 10_000, Seed: 1,
		Facts: []Fate{{Kind: "id", OfResult: true, Views: []bool{true, false}, Recall: []bool{true, true}}}})
	for i := range outcomes {
		if outcomes[i].Contender == "better" {
			outcomes[i].Contender = `a <"b">`
		}
	}
	r := Summarise(outcomes, Options{MeanViews: []int{15_000}})
	var table, plot, text bytes.Buffer
	for _, err := range []error{r.WriteCSV(&table), r.WriteSVG(&plot), r.WriteText(&text)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	if len(lines) != 1+len(r.Equal)+len(r.Same) || !strings.HasPrefix(lines[1], `"a <""b"">",0,15000.00,3,80.00`) {
		t.Errorf("the CSV is %s", table.String())
	}
	elements := map[string]int{}
	for d := xml.NewDecoder(&plot); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	if elements["circle"] != 8 || elements["svg"] != 1 {
		t.Errorf("two contenders in two windows, plotted twice: %v", elements)
	}
	for _, want := range []string{"Mean view of 15000 tokens: 3 sessions", "Window of 10000 tokens", "+20.0 (+20.0 … +20.0)", "100.0 (1)", "0.0 (1)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
}
