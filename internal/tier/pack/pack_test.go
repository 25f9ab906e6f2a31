package pack_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/tier/pack"
	"github.com/varve-dev/varve/internal/wire"
)

// shelf is where the tests store bodies.
type shelf struct {
	bodies map[uuid.UUID][]byte
	stored pack.Stored
	sizes  []int
}

func newShelf() *shelf { return &shelf{bodies: map[uuid.UUID][]byte{}, stored: pack.Stored{}} }

func (s *shelf) put(body []byte) {
	sum := sha256.Sum256(body)
	if _, there := s.stored[sum]; there {
		return
	}
	id := uuid.NewSHA1(uuid.Nil, body)
	s.bodies[id] = bytes.Clone(body)
	s.stored[sum] = id
	s.sizes = append(s.sizes, len(body))
}

func (s *shelf) content(id uuid.UUID) ([]byte, error) {
	body, ok := s.bodies[id]
	if !ok {
		return nil, fmt.Errorf("no body %s", id)
	}
	return body, nil
}

func (s *shelf) cut(body []byte) pack.Record {
	return pack.Cut(bytes.Clone(body), s.stored, pack.NewSizes(s.sizes...))
}

// check cuts a message, takes it through a pack, and fills it again.
func (s *shelf) check(t testing.TB, body []byte) pack.Record {
	t.Helper()
	made := s.cut(body)
	made.Seq = 7
	read, err := pack.Decode(pack.Encode([]pack.Record{made}))
	if err != nil || len(read) != 1 {
		t.Fatal(read, err)
	}
	filled, err := read[0].Fill(s.content)
	if err != nil {
		t.Fatalf("%v of %q", err, body)
	}
	if !bytes.Equal(filled, body) {
		t.Fatalf("%q became %q", body, filled)
	}
	return made
}

// putAll stores all values of a message, as a caller might who persists anything: the texts of strings, and the bytes
// of everything else.
func (s *shelf) putAll(body []byte) {
	if rawjson.Check(body, rawjson.Limits{}) != nil {
		return
	}
	var walk func(at rawjson.Span)
	walk = func(at rawjson.Span) {
		switch value := at.Of(body); value[0] {
		case '"':
			if text, ok := rawjson.Unquote(nil, value); ok {
				s.put(text)
			} else {
				s.put(value)
			}
		case '{':
			s.put(value)
			for _, member := range rawjson.Members(body, at.Start) {
				walk(member)
			}
		case '[':
			s.put(value)
			for element := range rawjson.Elements(body, at.Start) {
				walk(element)
			}
		}
	}
	walk(rawjson.Value(body))
}

// asPython writes a text as Python's json.dumps does with ensure_ascii.
func asPython(text string) string {
	var out strings.Builder
	for _, r := range string(rawjson.Quote(nil, []byte(text))) {
		switch {
		case r == 0x7f:
			out.WriteString(`\u007f`)
		case r < 0x80:
			out.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func asGo(text string) string {
	literal, _ := json.Marshal(text)
	return string(literal)
}

func asGoWithoutHTML(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSuffix(out.String(), "\n")
}

func asJavaScript(text string) string { return string(rawjson.Quote(nil, []byte(text))) }

func asPHP(text string) string { return strings.ReplaceAll(asPython(text), `/`, `\/`) }

// asJackson writes the digits of escapes in capitals.
func asJackson(text string) string {
	escape := regexp.MustCompile(`\\(u[0-9a-f]{4}|.)`)
	return escape.ReplaceAllStringFunc(asJavaScript(text), func(found string) string {
		return found[:2] + strings.ToUpper(found[2:])
	})
}

var writers = map[string]func(string) string{
	"Go": asGo, "Go without HTML": asGoWithoutHTML, "Python": asPython, "JavaScript": asJavaScript, "PHP": asPHP,
	"Jackson": asJackson,
}

func TestEveryKnownWritersStringsBecomeHoles(t *testing.T) {
	t.Parallel()
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s := newShelf()
				text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune(
					"ab/\\\"'<>&\x00\b\f\n\r\t\x1b\x7f\u2028\u2029é😀"))),
					rapid.Just("a\x1b[0m</b>\u2028é\U0001F600\\")).Draw(t, "text")
				if strings.ContainsRune(text, '\x7f') && name == "PHP" {
					t.Skip("asPHP writes DEL as Python does")
				}
				s.put([]byte(text))
				body := `{"role":"tool","content":[{"text":` + write(text) + `}]}`
				r := s.cut([]byte(body))
				if len(r.Holes) == 0 {
					t.Fatalf("no hole for %s", body)
				}
				if filled, err := r.Fill(s.content); err != nil || string(filled) != body {
					t.Fatalf("%q became %q, %v", body, filled, err)
				}
			})
		})
	}
}

// jsonValue draws any JSON, as text, with strings that are written in any way that JSON allows.
func jsonValue(depth int) *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		`a`, `/`, `\/`, `\"`, `\\`, `\u0000`, `\u001B`, `\u001b`, `\n`, `\u000a`, `é`, `\u00e9`, `\u00E9`, `<`, `\u003c`,
		`\ud800`, `\udc00`, `\ud83d\ude00`, `😀`, "\u2028", `\u2028`, "\x7f", `\u007f`, `\b`, `\u0008`, `'`, `\u0027`,
	})
	text := rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "") + `"`
	})
	scalar := rapid.OneOf(text, rapid.SampledFrom([]string{`1e400`, `-0`, `null`, `true`, `""`, `{}`, `[]`}))
	if depth == 0 {
		return scalar
	}
	inner := jsonValue(depth - 1)
	array := rapid.Custom(func(t *rapid.T) string {
		return `[ ` + strings.Join(rapid.SliceOfN(inner, 0, 4).Draw(t, "elements"), ` , `) + `]`
	})
	object := rapid.Custom(func(t *rapid.T) string {
		members := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return text.Draw(t, "key") + ` :` + inner.Draw(t, "value")
		}), 0, 4).Draw(t, "members")
		return `{` + strings.Join(members, ",\n") + ` }`
	})
	return rapid.OneOf(scalar, array, object)
}

func TestFillUndoesCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(jsonValue(3).Draw(t, "body"))
		s := newShelf()
		s.putAll(body)
		s.checkIn(t, body)
		other := []byte(jsonValue(3).Draw(t, "other"))
		s.checkIn(t, other) // bodies of one message in another
	})
}

// checkIn does what check does, for rapid, whose T is no testing.TB.
func (s *shelf) checkIn(t *rapid.T, body []byte) {
	r := s.cut(body)
	filled, err := r.Fill(s.content)
	if err != nil || !bytes.Equal(filled, body) {
		t.Fatalf("%q became %q, %v", body, filled, err)
	}
}

func FuzzFillUndoesCut(f *testing.F) {
	for _, seed := range []string{
		`{"a":"b","a":"b"}`, `["\u0000","\ud800","\/","<\u003c"]`, `{"a":[{"b":"\u2028\u001B"}],"a":1e400}`, "\xff",
		`"é\u00e9"`, `[[[["x"]]]]`, ``, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newShelf()
		s.putAll(body)
		s.check(t, body)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(pack.Encode([]pack.Record{{Seq: 1, Rest: []byte(`{}`), Shape: "x", View: []byte{}}}))
	f.Fuzz(func(t *testing.T, packed []byte) {
		records, err := pack.Decode(packed)
		if err != nil {
			return
		}
		again, err := pack.Decode(pack.Encode(records))
		if diff := cmp.Diff(records, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func TestAPackKeepsEverythingOfARecord(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.put([]byte("the content"))
	records := []pack.Record{
		{Seq: 3, Rest: []byte("\xff is no JSON"), Shape: "a\x1fb"},
		s.cut([]byte(`{"content":"the content"}`)),
		{Seq: 1 << 40, Rest: []byte{}, View: []byte{}},
		{Seq: 1<<40 + 1, Rest: []byte(`{}`), View: []byte(`{"v":1}`)},
	}
	records[1].Seq = 9
	read, err := pack.Decode(pack.Encode(records))
	if diff := cmp.Diff(records, read); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
}

func TestACutPackIsCorrupt(t *testing.T) {
	t.Parallel()
	whole := pack.Encode([]pack.Record{{Seq: 1, Rest: []byte(`{"a":1}`), Shape: "x"}})
	for n := range whole {
		if _, err := pack.Decode(whole[:n]); err == nil {
			t.Errorf("the first %d bytes of a pack are one", n)
		}
	}
}

func TestAHoleIsNeverFilledWithSomethingElse(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.put([]byte("the content"))
	body := []byte(`{"content":"the content"}`)
	r := s.check(t, body)
	if len(r.Holes) != 1 {
		t.Fatal(r.Holes)
	}
	for id := range s.bodies {
		s.bodies[id] = []byte("the context")
	}
	if filled, err := r.Fill(s.content); err == nil {
		t.Errorf("filled with %s", filled)
	}
	r.Holes[0].At = 1000
	if _, err := r.Fill(s.content); err == nil {
		t.Error("a hole behind the end")
	}
}

func TestAllResultsOfRecordedSessionsAreCut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("packs all recorded sessions")
	}
	read, _, err := compacttest.Recorded("../../../shared/data")
	if err != nil {
		t.Fatal(err)
	}
	results, holes := 0, 0
	for i := range read {
		c := &read[i]
		s := newShelf()
		records := make([]pack.Record, len(c.Messages))
		for seq, body := range c.Messages {
			facts, err := wire.Inspect(c.Format, body)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range facts.Parts {
				content := wire.ResultText(c.Format, body, p)
				if p.Kind == wire.Result && len(content.Stored) > 4<<10 {
					s.put(content.Stored)
					results++
				}
			}
			records[seq] = s.cut(body)
			records[seq].Seq = int64(seq + 1)
			holes += len(records[seq].Holes)
		}
		decoded, err := pack.Decode(pack.Encode(records))
		if err != nil {
			t.Fatal(err)
		}
		for k := range decoded {
			if filled, err := decoded[k].Fill(s.content); err != nil || !bytes.Equal(filled, c.Messages[k]) {
				t.Fatalf("%s: message %d is another: %v", c.ID, k+1, err)
			}
		}
	}
	t.Logf("%d results over 4 KiB, %d holes", results, holes)
	if holes < results {
		t.Errorf("%d of %d results were left whole", results-holes, results)
	}
}
