package readback_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/readback"
)

func TestTheTextInAResultThatIsJSON(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`[{"type":"text","text":"a\nb"},{"type":"input_text","text":"\u00e9"}]`:         "a\nbé",
		`[{"type":"text","text":"a"},{"type":"image","source":{}},{"text":"typeless"}]`: "a\n(image: 28 bytes of JSON at the pointer /1)\n(another block: 19 bytes of JSON at the pointer /2)\n",
		`{"output":"a\"b"}`:                          `a"b`,
		`{"type":"text","value":"x"}`:                "x",
		`{"path":"a.go","content":"l1\nl2","n":[1]}`: "path: a.go\ncontent: \nl1\nl2\nn: [1]\n",
		`{"path":"a.go","content":"one line"}`:       "",
		`[1,2]`:                                      "",
		`"text \ud83d"`:                              "text \uFFFD",
		`{"a":"\ud800"}`:                             "\uFFFD",
		`{`:                                          "",
		`{}`:                                         "",
	} {
		got, ok := readback.Readable([]byte(value))
		if string(got) != want && ok || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", value, got, ok, want)
		}
	}
}

func TestAPointerReadsAsItIsWritten(t *testing.T) {
	t.Parallel()
	text := ` {"a": [1, {"b/c": "d\u00e9"}], "k~": {}, "a": [10,20 , 30]}`
	of := persist.ContentOf([]byte(text))
	for pointer, want := range map[string]string{"": text[1:], "/a/1": "20", "/a": "[10,20 , 30]", "/k~0": "{}"} {
		got, err := readback.Pointer(t.Context(), of, pointer, 0)
		if err != nil || got.Content != want || got.NextOffset != nil || text[got.Offset:got.Offset+int64(got.Bytes)] != want {
			t.Errorf("%s: %+v, %v", pointer, got, err)
		}
	}
	for pointer, want := range map[string]string{
		"/a/3":   "pointer: /a is an array of 3 elements, from 0 on: it has no \"3\"",
		"/b":     "pointer: the whole value has no key \"b\": it has 3: a, k~, a",
		"/a/0/x": "pointer: /a/0 is a number, which has nothing inside",
		"a":      "pointer: must be \"\" or begin with \"/\", and have at most 1024 bytes, not \"a\"",
	} {
		if _, err := readback.Pointer(t.Context(), of, pointer, 0); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", pointer, err, want)
		}
	}
	long := persist.ContentOf([]byte(`{"x":"` + "éééééééééééééééééééééééééééééééééééééééé" + `"}`))
	got, err := readback.Pointer(t.Context(), long, "/x", 64)
	if err != nil || !got.Truncated || len(got.Content) != 63 || *got.NextOffset != 5+63 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readback.Pointer(t.Context(), persist.ContentOf([]byte("no JSON")), "", 0); err == nil {
		t.Error("a text has a pointer")
	}
}
