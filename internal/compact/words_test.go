package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

var aRef = session.NewResultRef(9_000_000_000, 12, [32]byte{0xab, 0xcd})

// TestALineIsShort: no line is longer, as JSON, than the least that head and tail may keep, so that it is a step down
// from them, whatever names and previews there are.
func TestALineIsShort(t *testing.T) {
	t.Parallel()
	pieces := map[string]string{
		"plain": "abcdefghi ", "wide": "漢字かな", "characters of four bytes": "😀", "quoted": `"\`, "control characters": "\x01\x02", "replaced characters": "\ufffd",
	}
	longest := longestLine(t)
	wordings := map[string]policy.Wording{"the longest": {
		Stub: longest + "{ref}{tool}{resource}{bytes}{seq}", Placeholder: longest + "{ref}{tool}{preview}", Clear: longest + "{ref}",
	}}
	for _, profile := range policy.Profiles() {
		wordings[profile] = profileOf(profile).Wording
	}
	for wording, texts := range wordings {
		w, err := wordsOf(&texts)
		if err != nil {
			t.Fatal(err)
		}
		for name, piece := range pieces {
			long := strings.Repeat(piece, 200)
			for _, do := range []ActionKind{Stub, Placeholder, Blank} {
				t.Run(fmt.Sprintf("%s of %s, %s", do, name, wording), func(t *testing.T) {
					t.Parallel()
					v := values{action: do, ref: aRef, tool: long, resource: long, preview: previewOf([]byte(long)), seq: 9_000_000_000}
					line := w.appendLine([]byte("before"), v)[len("before"):]
					if n := rawjson.QuotedLen(line) - len(line) + text.Len(line); n > policy.MaxLineBytes {
						t.Errorf("%d bytes: %s", n, line)
					}
					if strings.Contains(texts.Placeholder, "{ref}") && do == Placeholder && !strings.Contains(string(line), aRef.String()) {
						t.Errorf("the ref is gone: %s", line)
					}
				})
			}
		}
	}
}

// longestLine returns the longest text beside a ref that a policy may have.
func longestLine(t *testing.T) string {
	t.Helper()
	for n := policy.MaxLineBytes; n > 0; n-- {
		line := strings.Repeat("x", n)
		if _, err := policy.Parse(fmt.Appendf(nil, `{"wording":{"stub":"%s{ref}"}}`, line)); err == nil {
			return line
		}
	}
	t.Fatal("no policy takes a line")
	return ""
}

func TestTheTextsOfLines(t *testing.T) {
	t.Parallel()
	w, err := wordsOf(&policy.Wording{
		Cap: "<{ref} {tool} {chars} {bytes} {tokens} {cut_tokens} {head}>", Bookend: "<{chars}>", Stub: "{ref} {tool} {resource} {bytes} {seq}",
		Placeholder: "{tool}: {preview}", Clear: "{ref}", Summary: "{text}", Truncated: "{first}",
	})
	if err != nil {
		t.Fatal(err)
	}
	line := func(v values) string { return string(w.appendLine(nil, v)) }
	for name, c := range map[string]struct{ want, got string }{
		"a stub has every value": {
			aRef.String() + " Read a.go 40 7", line(values{action: Stub, ref: aRef, tool: "Read", resource: "a.go", bytes: 40, seq: 7}),
		},
		"a long resource is cut": {
			aRef.String() + " Read " + strings.Repeat("x", resourceBytes) + " 40 7",
			line(values{action: Stub, ref: aRef, tool: "Read", resource: strings.Repeat("x", 500), bytes: 40, seq: 7}),
		},
		"a tool without a name is unknown": {"unknown: text", line(values{action: Placeholder, preview: "text"})},
		"a tool's name breaks no line":     {"a__b___: text", line(values{action: Placeholder, tool: "a\n\tb\"\\é", preview: "text"})},
		"a long tool's name is cut": {
			strings.Repeat("x", labelChars) + ": text", line(values{action: Placeholder, tool: strings.Repeat("x", 500), preview: "text"}),
		},
		"the line between head and tail has every value": {
			"head<" + aRef.String() + " Read 100 90 80 78 4>tail",
			string(w.appendCut(nil, Cap, []byte("head"), []byte("tail"), values{ref: aRef, tool: "Read", chars: 100, bytes: 90, tokens: 80})),
		},
	} {
		if c.want != c.got {
			t.Errorf("%s: got %s, want %s", name, c.got, c.want)
		}
	}
}

// TestAPreviewHidesSecrets: it is the only text of a result that no step shows otherwise.
func TestAPreviewHidesSecrets(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	if got := previewOf([]byte("token: " + secret + "\nmore")); strings.Contains(got, secret) || strings.ContainsAny(got, "\n") {
		t.Errorf("got %q", got)
	}
}
