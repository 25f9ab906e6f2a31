package compact

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

func TestReadersAreKnownByTheirNames(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]bool{
		"read_result": true, "grep_results": true, "list_results": true, "search_session": true, "get_messages": true,
		"get_context": true, "mcp__varve__read_result": true, "varve.get_messages": true, "varve/get_context": true,
		"request_compaction": false, "read_results": false, "Read_result": false, "unread_result": false, "spread_result": false,
		"xread_result": false, "": false, "Read": false, "read_result ": false,
	} {
		if got := isReader(tool); got != want {
			t.Errorf("isReader(%q) = %t", tool, got)
		}
	}
}

func TestAPassageNamesItsSource(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"r9.0-9f3a lines 200-399": passage("r9.0-9f3a", "abc"),
		"m17-42 lines 200-399":    passage("m17-42", ""),
		"u3-9f3a bytes 5-7":       session.Passage{Ref: "u3-9f3a", Offset: 5, Bytes: 3, TotalBytes: 9, SHA256: strings.Repeat("0", 64)}.String() + "\nabc",
		"":                        "see " + passage("r9.0-9f3a", "abc"),
	} {
		if got := sourceIn([]byte(text)); got != want {
			t.Errorf("%.40q names %q, want %q", text, got, want)
		}
	}
}

// passage returns what read_result answers.
func passage(ref, content string) string {
	p := session.Passage{Ref: ref, First: 200, Last: 399, TotalLines: 1000, Bytes: int64(len(content)), TotalBytes: 1 << 20, SHA256: strings.Repeat("9f", 32)}
	return p.String() + "\n" + content
}

func window(tool, ref string, chars int) move {
	return returns(tool, "x", passage(ref, filler(chars)))
}

// TestACopyNamesItsOriginal: the line of what was read back names the result that it is of, with the lines, and that of
// an uploaded result's text the upload; its own ref has its bytes.
func TestACopyNamesItsOriginal(t *testing.T) {
	t.Parallel()
	const mark = "[cut: read_result u3-9f3a returns all]"
	text := filler(900) + mark + filler(600)
	uploads := []Upload{{Ref: "u3-9f3a", CallID: "c", TextDigest: DigestOf([]byte(text))}}
	for name, c := range map[string]struct {
		of   move
		want string
	}{
		"a window":                       {window("read_result", "r9.0-9f3a", 1500), "r9.0-9f3a lines 200-399"},
		"messages":                       {window("get_messages", "m3-9", 1500), "m3-9 lines 200-399"},
		"a search has no one original":   {gives("search_session", "x", 1500), ""},
		"the text of an upload":          {returns("Bash", "x", text), "u3-9f3a"},
		"white space around it":          {returns("Bash", "x", "\n"+text+" \n"), "u3-9f3a"},
		"a text around it":               {returns("Bash", "x", "exit 0\n"+text), ""},
		"its line in a tool's own text":  {returns("Bash", "x", filler(700)+"\n"+mark+"\n"+filler(700)), ""},
		"a ref that is only quoted":      {returns("Bash", "x", filler(900)+" u3-9f3a "+filler(600)), ""},
		"the text in another call's":     {then(calls("d", "Bash", `{}`), answered("d", literal(text))), ""},
		"an upload of another session's": {returns("Bash", "x", strings.ReplaceAll(text, "9f3a", "9f3b")), ""},
	} {
		for _, f := range written {
			in := input(t, f, only("trim", nil), 1500, c.of, says(filler(20_000)))
			in.Uploads = uploads
			plan, made := compacted(t, in)
			if len(plan.Actions) != 1 || len(plan.Results) != 1 {
				t.Fatalf("%s: %v", name, outcomes(plan))
			}
			a, r := plan.Actions[0], plan.Results[0]
			if a.Source != c.want || r.Source != c.want || a.Ref != r.Ref.String() || r.Ref.Seq != 2 {
				t.Errorf("%s in %s: the manifest has %s of %q, persisted is %s of %q, want of %q", name, f, a.Ref, a.Source, r.Ref, r.Source, c.want)
			}
			shown := c.want
			if shown == "" {
				shown = a.Ref
			}
			line := string(said(show(t, f, made)[1], &show(t, f, made)[1].parts[0]))
			if !strings.Contains(line, " "+shown) {
				t.Errorf("%s in %s: the line lacks %q: %s", name, f, shown, line)
			}
		}
	}
}

// TestASummaryNamesTheUpload: the largest results that a summary names are those that have everything.
func TestASummaryNamesTheUpload(t *testing.T) {
	t.Parallel()
	mark := "[cut: read_result u3-9f3a returns all]"
	p := only("summarise", nil)
	in := input(t, session.Anthropic, p, 1000, asks("go"), returns("Bash", "x", filler(900)+mark+filler(6000)), says("a"), asks("b"), says("c"), asks("d"))
	in.Uploads = []Upload{{Ref: "u3-9f3a", TextDigest: DigestOf([]byte(filler(900) + mark + filler(6000)))}}
	_, made := compacted(t, in)
	if !strings.Contains(string(made.Body), "Its largest results: u3-9f3a Bash (") {
		t.Errorf("the summary does not name it: %s", made.Body)
	}
}

// TestAWindowIsNotCutAtInsertion: under a policy that cuts every result as it comes in, what was read back stays whole.
func TestAWindowIsNotCutAtInsertion(t *testing.T) {
	t.Parallel()
	p := only("cap", func(p *policy.Policy) { p.Cap.AtInsertion = true })
	for text, want := range map[string]bool{passage("r9.0-9f3a", ""): false, "": true} {
		in := input(t, session.OpenAIChat, p, 1000, calls("c", "read_result", `{}`), answered("c", literal(text+filler(9000))))
		plan, _ := compacted(t, in)
		if cut := len(plan.Actions) > 0; cut != want {
			t.Errorf("%q: cut %t by a compaction", text, cut)
		}
		capped, err := CapAtIngest(&p, session.OpenAIChat, 2, in.Tail[1].Body, readBackCall)
		if err != nil || (capped != nil) != want {
			t.Errorf("%q: cut %t when it was appended, %v", text, capped != nil, err)
		}
	}
}

func readBackCall(*wire.Part) (tool string, ok bool) { return "read_result", true }
