package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// Update is of all tests of renditions.
var Update = flag.Bool("update", false, "write the digests of the renditions")

// TestOtherRenditionsHaveAnotherVersion compares a digest of many renditions with the one that was written down for
// this RenditionVersion: readers who have an older view must not be told that it is the newest.
func TestOtherRenditionsHaveAnotherVersion(t *testing.T) {
	t.Parallel()
	digest := sha256.New()
	add := func(f session.Format, view []Stored) {
		fmt.Fprintln(digest, f)
		AddRenditions(digest, view)
	}
	views := growingViews()
	for _, name := range slices.Sorted(maps.Keys(views)) {
		view := views[name](6)
		add(view[0].Format, view)
	}
	for _, f := range session.Formats() {
		for _, x := range fixtures[f] {
			if len(x.bodies) < longList {
				add(f, storedAs(f, x.bodies))
			}
		}
	}
	CheckDigest(t, "testdata/renditions.txt", "", digest)
}

// AddRenditions adds to a digest what a view becomes in every format, and for models of several providers.
func AddRenditions(digest io.Writer, view []Stored) {
	for _, target := range session.Formats() {
		for _, o := range []Options{{}, {Pending: SynthesizePending}, {Pending: DropPending, Model: "claude-opus-4-1", Author: "claude-3-7-sonnet"}, {Model: "mistral-large"}, {Model: "deepseek-reasoner"}, {Model: "us.anthropic.claude-opus-4-6"}} {
			made := rendered(target, view, o)
			bodies := made.Bodies
			made.Bodies = nil
			fmt.Fprintf(digest, "%s %v\n%s\n%+v\n", target, o, bodies, *made)
		}
	}
}

// CheckDigest compares the digest of renditions with that of a file, which has the RenditionVersion that wrote it, and
// what the renditions were made of. If they are made of the same, another digest needs another version.
func CheckDigest(t *testing.T, file, of string, renditions hash.Hash) {
	t.Helper()
	got := strings.TrimSpace(RenditionVersion+" "+of) + " " + hex.EncodeToString(renditions.Sum(nil)) + "\n"
	want, err := os.ReadFile(file)
	if err != nil && !*Update {
		t.Fatal(err)
	}
	version, rest, _ := strings.Cut(string(want), " ")
	switch {
	case got == string(want):
	case !*Update:
		t.Errorf("%s has %q, want %q: if Render is to write other bytes, raise RenditionVersion and run with -update", file, want, got)
	case version == RenditionVersion && strings.HasPrefix(rest, of):
		t.Errorf("raise RenditionVersion first: version %s is in use, with other bytes", version)
	default:
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// TestAListThatIsTooLongLosesItsOldestMessages renders lists of a provider that takes few messages.
func TestAListThatIsTooLongLosesItsOldestMessages(t *testing.T) {
	t.Parallel()
	s := speeches[session.Anthropic]
	few := *repairerOf(session.Anthropic, nil).provider
	few.MaxMessages = 7
	oneTurn := append(slices.Repeat([]string{`{"role":"assistant","content":"so"}`}, 9),
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ra"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"rb"}]}`)
	for name, c := range map[string]struct {
		bodies  []string
		want    int
		repairs int
	}{
		"short":                  {growing["turns"](s, 1), 4, 0},
		"long":                   {append([]string{`{"role":"system","content":"be good"}`}, growing["turns"](s, 5)...), 1 + 4, 1},
		"the user is silent":     {append([]string{s.user(0)}, growing["call and result in turn"](s, 5)...), 7, 1},
		"one turn alone":         {append([]string{s.user(0)}, oneTurn...), 3, 1},
		"a long turn at the end": {append(growing["turns"](s, 5), oneTurn...), 5, 2},
	} {
		r := repairerOf(session.Anthropic, storedAs(session.Anthropic, c.bodies))
		r.provider = &few
		list, err := r.prepare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list = r.limitMessages(r.arrange(list))
		bodies := Encode(session.Anthropic, list)
		if len(list) != c.want || len(r.repairs) != c.repairs {
			t.Errorf("%s: %d messages, repairs %v", name, len(list), r.repairs)
		}
		if len(list)-pinnedHead(list) > few.MaxMessages {
			t.Errorf("%s: %d messages, the API takes %d", name, len(list), few.MaxMessages)
		}
		for _, v := range validated(session.Anthropic, bodies, Options{}) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestAFastValidatorCountsMessages(t *testing.T) {
	t.Parallel()
	add := func(v *FastValidator, messages int) *FastValidator {
		few := *v.provider
		few.MaxMessages = 8
		v.messages -= v.provider.MaxMessages / 2
		if v.messages < 0 {
			v.messages = 0
		} else {
			v.messages = few.MaxMessages / 2
		}
		v.provider, v.limit = &few, few.MaxMessages
		for n := range messages {
			facts, err := Inspect(session.Anthropic, []byte(speeches[session.Anthropic].user(n)))
			if err != nil {
				t.Fatal(err)
			}
			shape := ShapeOf(session.Anthropic, &facts)
			v.Add(&shape)
		}
		return v
	}
	for messages, want := range map[int]bool{8: true, 9: false} {
		if got := add(NewFastValidator(session.Anthropic), messages).Valid(""); got != want {
			t.Errorf("%d messages: %t", messages, got)
		}
	}
	for messages, want := range map[int]bool{4: true, 5: false} {
		state := add(NewFastValidator(session.Anthropic), messages).State()
		if got := add(ResumeFastValidator(session.Anthropic, state, nil), 4).Valid(""); got != want {
			t.Errorf("a checkpoint of %d messages, 4 after it: %t", messages, got)
		}
		if add(ResumeFastValidator(session.Anthropic, state, nil), 5).Valid("") {
			t.Errorf("a checkpoint of %d messages, 5 after it: valid", messages)
		}
	}
}
