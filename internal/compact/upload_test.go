package compact

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// uploaded returns an uploaded result with this content.
func uploaded(content, mediaType string) Uploaded {
	u := Uploaded{
		Upload: Upload{Ref: "u3-9f3a", CallID: "c"}, Tool: "Bash", MediaType: mediaType, Bytes: int64(len(content)),
		Chars: int64(text.Len([]byte(content))), Tokens: int64(len(content) / 4), Head: []byte(content),
	}
	if len(content) > UploadEdge {
		u.Head = []byte(content[:UploadEdge])
		u.Tail = []byte(content[max(UploadEdge, len(content)-UploadEdge):])
	}
	return u
}

func TestTheTextOfAnUploadIsItsHeadAndTail(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	for name, size := range map[string]int{"within the edges": 400_000, "a gigabyte and more than the edges": 3 << 20} {
		var content strings.Builder
		for n := 1; content.Len() < size; n++ {
			fmt.Fprintf(&content, "line %d: all is well, is it not? wörter\n", n)
		}
		whole := content.String()
		shown, mark, err := uploaded(whole, "text/plain").TextOf(&p, 128_000)
		if err != nil || !strings.Contains(mark, "read_result u3-9f3a") || strings.Count(shown, mark) != 1 {
			t.Fatalf("%s: the mark is %q, %v", name, mark, err)
		}
		head, tail, _ := strings.Cut(shown, mark)
		head, tail = strings.TrimRight(head, "\n"), strings.TrimLeft(tail, "\n")
		if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(head) < 1000 || len(tail) < 1000 {
			t.Errorf("%s: %d bytes of head, %d of tail are not those of the whole", name, len(head), len(tail))
		}
		if !utf8.ValidString(shown) || len(shown) > maxUploadText {
			t.Errorf("%s: %d bytes, valid %t", name, len(shown), utf8.ValidString(shown))
		}
	}
}

func TestASmallUploadIsItsOwnText(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	for _, content := range []string{"", "x", "ok\nwörter\n", `{"a":[1,2]}`} {
		if shown, mark, err := uploaded(content, "application/json").TextOf(&p, 128_000); shown != content || mark != "" || err != nil {
			t.Errorf("%q became %q, %q, %v", content, shown, mark, err)
		}
	}
}

func TestTheTextSaysWhatAnUploadIs(t *testing.T) {
	t.Parallel()
	p := policy.Default()
	for name, c := range map[string]struct{ content, mediaType, want string }{
		"a picture":              {"\x89PNG\r\n\x1a\n", "image/png", "[image/png, 8 bytes, not shown here: read_result u3-9f3a]"},
		"bytes that are no text": {"a\xff\xfeb", "text/plain; charset=utf-8", "[text/plain, 4 bytes, not shown here: read_result u3-9f3a]"},
		"a zero byte":            {"a\x00b", "application/octet-stream", "[application/octet-stream, 3 bytes, not shown here: read_result u3-9f3a]"},
		"an SVG is text":         {"<svg/>", "image/svg+xml", "<svg/>"},
		"text of a strange kind": {"MZ", "application/x-strange", "MZ"},
	} {
		shown, mark, err := uploaded(c.content, c.mediaType).TextOf(&p, 128_000)
		if shown != c.want || err != nil || mark != "" && mark != shown {
			t.Errorf("%s: %q, %q, %v", name, shown, mark, err)
		}
	}
	shown, _, err := uploaded("["+strings.Repeat(`{"name":"x"},`, 20_000)+"1]", "application/json").TextOf(&p, 128_000)
	if err != nil || !strings.Contains(shown, "\n[application/json]\n") {
		t.Errorf("large JSON does not say so: %q, %v", shown, err)
	}
}

// TestNoPolicyCutsTheTextOfAnUploadAgain: the text fits the policy that made it, so that its line stays in the view.
func TestNoPolicyCutsTheTextOfAnUploadAgain(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("2026-01-02T03:04:05Z INFO a line of some length, wörter and 日本語\n", 30_000)
	contents := map[string]string{
		"lines": lines, "one line": strings.ReplaceAll(lines, "\n", " "), "short lines": strings.Repeat("ok\n", 400_000),
		"JSON": "[" + strings.Repeat(`{"a":"b\\\"c"},`, 60_000) + "1]",
	}
	policies := map[string]policy.Policy{}
	for _, name := range policy.Profiles() {
		policies[name], _ = policy.Profile(name)
	}
	for name, limits := range map[string]policy.Cap{
		"characters": {MaxChars: 1000}, "bytes": {MaxBytes: 1000}, "tokens": {MaxTokens: 300}, "lines": {MaxLines: 9},
		"a share": {MaxRatio: 0.02},
	} {
		limits.Enabled = true
		limits.HeadChars, limits.TailChars = 6000, 5000
		p := policy.Default()
		p.Cap = limits
		policies[name] = p
	}
	for profile, p := range policies {
		for name, content := range contents {
			for _, window := range []int{8_000, 128_000, 1_000_000} {
				fitsItsPolicy(t, profile+", "+name, p, window, content)
			}
		}
	}
}

func fitsItsPolicy(t *testing.T, name string, p policy.Policy, window int, content string) {
	t.Helper()
	p.Cap.AtInsertion = true
	shown, mark, err := uploaded(content, plainText).TextOf(&p, window)
	if err != nil || mark == "" {
		t.Fatalf("%s: %q, %v", name, mark, err)
	}
	in := input(t, session.OpenAIChat, p, window, calls("c", "Bash", `{}`), answered("c", literal(shown)))
	bash := func(*wire.Part) (string, bool) { return "Bash", true }
	if capped, err := CapAtIngest(&p, session.OpenAIChat, 2, in.Tail[1].Body, bash); capped != nil || err != nil {
		t.Errorf("%s, %d: cut when it was appended: %t, %v", name, window, capped != nil, err)
	}
	plan, _ := compacted(t, in)
	for _, a := range plan.Actions {
		if a.Kind == Cap {
			t.Errorf("%s, %d: cut by a compaction to %d of %d tokens by %s", name, window, a.TokensAfter, a.TokensBefore, a.Rule)
		}
	}
}

func TestTheEdgesOfAnUploadHaveWholeCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"wörter", "日本語", "😀😀", "\xff\xff\xff\xff\xff", "", "a"} {
		for at := range len(c) + 1 {
			head, tail := WholeRunes([]byte(c[:at]), []byte(c[at:]))
			if utf8.ValidString(c) && (!utf8.Valid(head) || !utf8.Valid(tail)) {
				t.Errorf("%q at %d: %q and %q", c, at, head, tail)
			}
			if len(c)-len(head)-len(tail) > 3 && utf8.ValidString(c) && at > 0 && at < len(c) && len(head)+len(tail) == 0 {
				t.Errorf("%q at %d lost everything", c, at)
			}
		}
	}
}
