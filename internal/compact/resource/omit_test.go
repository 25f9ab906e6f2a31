package resource

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOmitLargeOmitsOnlyLargeValues(t *testing.T) {
	t.Parallel()
	const arguments = ` { "path":"xxxxxxxxxxxx", "a" : "yyyyyyyyyyyy","b":[1,"zzzzzzzz" ], "c":"\u00e9\u00e9", "d":12345678901234567890 } `
	for over, want := range map[int]struct {
		out     string
		omitted []string
	}{
		100: {arguments, nil},
		13:  {` { "path":"xxxxxxxxxxxx", "a" : "yyyyyyyyyyyy","b":"[omitted]", "c":"\u00e9\u00e9", "d":"[omitted]" } `, []string{"b 15", "d 20"}},
		3: {` { "path":"xxxxxxxxxxxx", "a" : "[omitted]","b":"[omitted]", "c":"[omitted]", "d":"[omitted]" } `,
			[]string{"a 12", "b 15", "c 4", "d 20"}},
	} {
		out, omitted := OmitLarge([]byte("> "), []byte(arguments), func(field string) bool { return field == "path" }, over, true)
		var got []string
		for _, o := range omitted {
			got = append(got, fmt.Sprintf("%s %d", o.Field, o.Bytes))
		}
		if diff := cmp.Diff([]any{"> " + want.out, want.omitted}, []any{string(out), got}); diff != "" {
			t.Errorf("over %d (-want +got):\n%s", over, diff)
		}
	}
}

func TestTheOmittedBytesAreHashedAsMeasured(t *testing.T) {
	t.Parallel()
	_, omitted := OmitLarge(nil, []byte(`{"a":"\u00e9/0123456789","b":[ "0123456789" ]}`), nil, 1, true)
	want := []Omitted{{"a", 13, sha256.Sum256([]byte("é/0123456789"))}, {"b", 16, sha256.Sum256([]byte(`[ "0123456789" ]`))}}
	if diff := cmp.Diff(want, omitted); diff != "" {
		t.Errorf("omitted (-want +got):\n%s", diff)
	}
}

func TestOmitKeepsTextThatIsNotAnObject(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{"", `["0123456789abcdef"]`, `{"a":"0123456789abcdef"`, `{"a":NaN,"b":"0123456789abcdef"}`} {
		if out, omitted := OmitLarge(nil, []byte(arguments), nil, 5, true); string(out) != arguments || omitted != nil {
			t.Errorf("OmitLarge(%s) = %s, %v", arguments, out, omitted)
		}
	}
}

// FuzzOmit checks that the output of OmitLarge is the object without the large values, is not longer, and has nothing
// more to omit.
func FuzzOmit(f *testing.F) {
	f.Add([]byte(`{"a":"0123456789abcdef","b":{"c":["0123456789abcdef"]},"a":1}`), 3)
	f.Add([]byte(`{"a":NaN,"b":"[omitted]"}`), 0)
	f.Fuzz(func(t *testing.T, arguments []byte, over int) {
		out, omitted := OmitLarge(nil, arguments, nil, over, true)
		if len(out) > len(arguments) {
			t.Errorf("OmitLarge(%q) = %q, which is longer", arguments, out)
		}
		if _, ok := parseJSON(out); len(omitted) > 0 && !ok {
			t.Errorf("OmitLarge(%q) = %q, which is no object", arguments, out)
		}
		if again, more := OmitLarge(nil, out, nil, over, true); string(again) != string(out) || more != nil {
			t.Errorf("OmitLarge(%q) = %q, and again %q", arguments, out, again)
		}
	})
}

func BenchmarkOmitLarge(b *testing.B) {
	arguments := []byte(`{"file_path":"/repo/internal/app/file.go","content":"` + strings.Repeat(`\tline of code\n`, 300) + `"}`)
	b.SetBytes(int64(len(arguments)))
	b.ReportAllocs()
	for b.Loop() {
		if _, omitted := OmitLarge(nil, arguments, nil, 100, true); omitted == nil {
			b.Fatal("nothing was omitted")
		}
	}
}
