package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	limits := Limits{Depth: 2, Nodes: 4, NumberBytes: 5}
	for _, c := range []struct {
		text string
		want *SyntaxError
	}{
		{` {"a":[1,"é\n\ud800"]} `, nil},
		{"", &SyntaxError{Offset: 0, Detail: "the text ends, expected a value"}},
		{`{"a"}`, &SyntaxError{Offset: 4, Detail: "found '}', expected ':' after the key"}},
		{`{"a":1,}`, &SyntaxError{Offset: 7, Detail: "found '}', expected a key in quotes"}},
		{`[1 é`, &SyntaxError{Offset: 3, Detail: "found 'é', expected ',' or ']' in an array"}},
		{`{} {}`, &SyntaxError{Offset: 3, Detail: "found '{', expected the end of the text after the value"}},
		{`"ab`, &SyntaxError{Offset: 3, Detail: "the text ends, expected the closing quote of the string that begins at byte 0"}},
		{"\"123456789\n\"", &SyntaxError{Offset: 10, Detail: `control character '\n' in a string, write \u000a`}},
		{`"\x"`, &SyntaxError{Offset: 2, Detail: `found 'x', expected one of "\/bfnrtu after a backslash`}},
		{`"\u12g4"`, &SyntaxError{Offset: 5, Detail: `found 'g', expected four hexadecimal digits after \u`}},
		{"\"\xff\"", &SyntaxError{Offset: 1, Detail: "the text is not valid UTF-8"}},
		{"01", &SyntaxError{Offset: 1, Detail: "found '1', expected the end of the text after the value"}},
		{"-", &SyntaxError{Offset: 1, Detail: "the text ends, expected a digit"}},
		{"nul", &SyntaxError{Offset: 0, Detail: "found 'n', expected true, false or null"}},
		{"[[[]]]", &SyntaxError{Offset: 2, Detail: "nested deeper than 2 levels", Limit: "depth"}},
		{"[[],[],[],[]]", &SyntaxError{Offset: 10, Detail: "more than 4 values", Limit: "nodes"}},
		{"[1e400]", nil},
		{"123456", &SyntaxError{Offset: 0, Detail: "a number of more than 5 characters", Limit: "number_bytes"}},
	} {
		var got *SyntaxError
		if err := Check([]byte(c.text), limits); err != nil && !errors.As(err, &got) {
			t.Fatalf("Check(%q) = %T", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Check(%q) (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestCheckWithoutADepthLimitStillBoundsItsRecursion(t *testing.T) {
	t.Parallel()
	var got *SyntaxError
	err := Check(bytes.Repeat([]byte("["), 20_000), Limits{})
	if !errors.As(err, &got) || got.Limit != "depth" || got.Offset != maxDepth {
		t.Errorf("Check = %v", err)
	}
}

func TestMembersAndElementsAreByteRanges(t *testing.T) {
	t.Parallel()
	data := []byte(` { "a" : [ 1 , {"b":"]}"} , [] ] , "a":"\\\"", "" : null } `)
	var got []string
	for key, value := range Members(data, Value(data).Start) {
		got = append(got, string(key.Of(data))+"="+string(value.Of(data)))
		if data[value.Start] == '[' {
			for element := range Elements(data, value.Start) {
				got = append(got, string(element.Of(data)))
			}
		}
	}
	want := []string{`"a"=[ 1 , {"b":"]}"} , [] ]`, "1", `{"b":"]}"}`, "[]", `"a"="\\\""`, `""=null`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	for range Members(data, 1) {
		break // stopping early must not walk on
	}
}

func TestKeyIsReadsEscapes(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]bool{`"role"`: true, `"r\u006fle"`: true, `"roles"`: false, `"rol"`: false, `"ro\\e"`: false, `"\ud800role"`: false} {
		if got := KeyIs([]byte(literal), Span{0, len(literal)}, "role"); got != want {
			t.Errorf("KeyIs(%s, role) = %v", literal, got)
		}
	}
}

func TestUnquote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		literal, text string
		ok            bool
	}{
		{`""`, "", true},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", true},
		{`"\u0000\u00e9\u20AC\ud83d\ude00"`, "\x00é€😀", true},
		{`"a\ud800"`, "a\uFFFD", false},
		{`"\ude00\ud83d"`, "\uFFFD\uFFFD", false},
		{`"\ud800\ud83d\ude00"`, "\uFFFD😀", false},
		{`"\ud800\n"`, "\uFFFD\n", false},
	} {
		text, ok := Unquote([]byte("before "), []byte(c.literal))
		if string(text) != "before "+c.text || ok != c.ok {
			t.Errorf("Unquote(%s) = %q, %v", c.literal, text, ok)
		}
	}
}

func TestQuoteEscapesOnlyWhatItMust(t *testing.T) {
	t.Parallel()
	got := string(Quote(nil, []byte("<a href=\"\\\">\u2028\x7f\x00\x1f\b\f\n\r\té\xff")))
	if want := `"<a href=\"\\\">` + "\u2028\x7f" + `\u0000\u001f\b\f\n\r\té` + "\uFFFD\""; got != want {
		t.Errorf("Quote = %s, want %s", got, want)
	}
}

func TestCanonicalFormsOfEqualValuesAreEqual(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		` { "b" : [ 1.0 , true ] , "a\u0062" : "\u0041\/" } `: `{"ab":"A/","b":[1.0,true]}`,
		`{"a":2,"\u0061":1,"A":{}}`:                           `{"A":{},"a":2,"a":1}`,
		`"\ud800\u0041"`:                                      `"\ud800\u0041"`,
		` [ ] `:                                               `[]`,
	} {
		if got := string(AppendCanonical(nil, []byte(value))); got != want {
			t.Errorf("AppendCanonical(%s) = %s, want %s", value, got, want)
		}
	}
}

// seeds are texts for every fuzz target: each kind of value, of escape and of damage.
var seeds = []string{
	`{"role":"tool","content":"a\u0000\n\"é😀\ud83d\ude00","n":[-1.5e+3,0,1E400,true,false,null,{}],"role":"x"}`,
	`"\ud800"`, "\"\xff\"", `[[],{"":[{}]}]`, " \t\r\n1 ", `{"a":1,}`, `"\\\\\""`, "01", "1.", "-", `"` + "\x01" + `"`, "tru", "[1,]", "",
}

func addSeeds(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
}

func FuzzCheckAgreesWithStandardLibrary(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		want := json.Valid(data) && bytes.Equal(data, bytes.ToValidUTF8(data, nil))
		if err := Check(data, Limits{}); (err == nil) != want {
			t.Errorf("Check(%q) = %v, want valid %v", data, err, want)
		}
	})
}

func FuzzStringsAgreeWithStandardLibrary(f *testing.F) {
	for _, seed := range []string{`a`, `\u0000\ud83d\ude00\\\"\/`, `\ud800`, `é`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, inner []byte) {
		literal := append(append([]byte{'"'}, inner...), '"')
		if Check(literal, Limits{}) != nil {
			return
		}
		var want string
		if err := json.Unmarshal(literal, &want); err != nil {
			t.Fatal(err)
		}
		text, ok := Unquote(nil, literal)
		if string(text) != want {
			t.Errorf("Unquote(%s) = %q, want %q", literal, text, want)
		}
		again, okAgain := Unquote(nil, Quote(nil, text))
		if !bytes.Equal(again, text) || !okAgain {
			t.Errorf("Unquote(Quote(%q)) = %q, %v", text, again, okAgain)
		}
		if !ok && !strings.Contains(want, "\uFFFD") {
			t.Errorf("Unquote(%s) is not ok, but holds no lone surrogate", literal)
		}
	})
}

func FuzzWalkAgreesWithDecoder(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if Check(data, Limits{Depth: 100}) != nil {
			return
		}
		var raw json.RawMessage
		decoder := json.NewDecoder(bytes.NewReader(data))
		if err := decoder.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		value := Value(data)
		if int(decoder.InputOffset()) != value.End || !bytes.Equal(raw, value.Of(data)) {
			t.Fatalf("Value(%q) = %v, the decoder read %q", data, value, raw)
		}
		walk(t, data, value)
		canonical := AppendCanonical(nil, data)
		if !json.Valid(canonical) || !bytes.Equal(canonical, AppendCanonical(nil, canonical)) {
			t.Errorf("AppendCanonical(%q) = %q, which is not its own canonical form", data, canonical)
		}
	})
}

// walk checks that every value below at is one for the standard library too.
func walk(t *testing.T, data []byte, at Span) {
	if !json.Valid(at.Of(data)) {
		t.Fatalf("%q in %q is no value", at.Of(data), data)
	}
	switch data[at.Start] {
	case '{':
		for key, value := range Members(data, at.Start) {
			walk(t, data, key)
			walk(t, data, value)
		}
	case '[':
		for element := range Elements(data, at.Start) {
			walk(t, data, element)
		}
	}
}

// BenchmarkCheck measures real conversations where VARVE_DATA names a folder of them, else one made up here.
func BenchmarkCheck(b *testing.B) {
	for name, data := range conversations(b) {
		b.Run("Check/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := Check(data, Limits{Depth: 64}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("Valid/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if !json.Valid(data) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run("Skip/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				Value(data)
			}
		})
	}
}

func conversations(b *testing.B) map[string][]byte {
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]},`
	result := `{"role":"tool","tool_call_id":"call_1","content":"` + strings.Repeat(`func f() error {\n\treturn fmt.Errorf(\"%w\", err) // a comment\n}\n`, 50) + `"},`
	texts := map[string][]byte{"made": []byte("[" + strings.Repeat(call+result, 100) + "null]")}
	files, err := filepath.Glob(filepath.Join(os.Getenv("VARVE_DATA"), "openai-chat", "miniswe*.json"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		if texts[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			b.Fatal(err)
		}
	}
	return texts
}

func TestHasAny(t *testing.T) {
	t.Parallel()
	words := []string{"image", "image_url"}
	for data, want := range map[string]bool{
		`{"type":"image"}`:                             true,
		`{"image":1}`:                                  true,
		`{"type":"text"} , {"type":"image_url"}`:       true,
		`{"text":"an \"image\" is no type"}`:           false,
		`{"text":"ends in a backslash \\","image":[]}`: true,
		`{"type":"images"}`:                            false,
		`[1,true]`:                                     false,
	} {
		if got := HasAny([]byte(data), words); got != want {
			t.Errorf("HasAny of %s is %t", data, got)
		}
	}
}

// TestCheckFindsTheHalvesThatASearchFinds in texts of the pieces that escape sequences are made of.
func TestCheckFindsTheHalvesThatASearchFinds(t *testing.T) {
	t.Parallel()
	pieces := []string{`\\`, `\"`, `\n`, `\ud83d`, `\uDE00`, `\u0041`, `\u005c`, `\u0075`, `\ud7ff`, `\ue000`, `u`, `d83d`, `0`, `é`, ` `}
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[Halves]int{}
	for range 20_000 {
		var text strings.Builder
		text.WriteByte('"')
		for range rng.IntN(5) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		text.WriteByte('"')
		got, err := CheckHalves([]byte(text.String()), Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text.String(), err)
		}
		if want := FindHalves([]byte(text.String())); got != want {
			t.Fatalf("%s: %+v, want %+v", text.String(), got, want)
		}
		if whole := Whole([]byte(text.String())); len(whole) != text.Len() && !got.May {
			t.Fatalf("%s has half of a pair, and none was found", text.String())
		}
		seen[got]++
	}
	if len(seen) != 3 { // none, inside, both
		t.Errorf("the texts had only %v", seen)
	}
}
