package resource

import (
	"strings"
	"testing"
)

func TestIdentifyReadsWellKnownArguments(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"path":"b","file_path":" a/ "}`:                          "a",
		`{"file_path":"\t","path":"C:\\Dir\\"}`:                    "c:/Dir",
		`{"path":"/"}`:                                             "",
		`{"path":"a","path":"b"}`:                                  "b",
		`{"p\u0061th":"\u0061"}`:                                   "a",
		`{"path":"a","offset":"x","start_line":3,"limit":"1_0"}`:   "a:offset:3:limit:10",
		`{"path":"a","offset":" ٣ ","limit":-0}`:                   "a:offset:3:limit:0",
		`{"path":"a","offset":1.0,"from_line":true,"count":"+07"}`: "a:offset:True:limit:7",
		`{"path":"a","offset":"1__0","limit":"_1"}`:                "a",
		`{"path":"a","offset":NaN,"start_line":-Infinity}`:         "a",
		`{"dir":"/d/","pattern":" *.go "}`:                         "/d:*.go",
		`{"Cwd":"w","command":"ls"}`:                               "w",
		`{"command":"  /usr/bin/Git.EXE status"}`:                  "git",
		`{"command":"C:\\tools\\run.ps1\u00a0-x"}`:                 "run",
		`{"cmd":"bin/"}`:                                           "",
		`{"query":"q","SearchPath":"/p"}`:                          "q:/p",
		`{"SearchPath":"/p"}`:                                      "/p:/p",
		` [1, 2] `:                                                 "[1, 2]",
		`-NaN`:                                                     "-NaN",
		`"text"`:                                                   `"text"`,
		"not {json":                                                "not {json",
	} {
		key, ok := Identify("file_read", "T", []byte(arguments))
		if got := strings.Join(append([]string{key.Tool, key.Primary}, key.Secondary...), ":"); got != "T:"+want || !ok {
			t.Errorf("Identify(%s) = %q, %v, want %q", arguments, got, ok, "T:"+want)
		}
	}
	for _, arguments := range []string{`{}`, `{"path":5,"command":["ls"]}`, "", " \x1c\u0085"} {
		if key, ok := Identify("file_read", "T", []byte(arguments)); ok {
			t.Errorf("Identify(%q) = %v, nothing tells a resource", arguments, key)
		}
	}
	if key, ok := Identify("file_read", "T", nil); ok {
		t.Errorf("Identify without arguments = %v", key)
	}
}

func TestOnlyReadsHavePages(t *testing.T) {
	t.Parallel()
	for operation, want := range map[string]int{"file_read": 1, "view_file": 1, "file_write": 0, "search": 0} {
		key, _ := Identify(operation, "t", []byte(`{"path":"a","offset":1}`))
		if len(key.Secondary) != want {
			t.Errorf("Identify(%s) = %v", operation, key)
		}
	}
}

func TestKeysAreComparedPartByPart(t *testing.T) {
	t.Parallel()
	same := Key{"Read", "a", []string{"b"}}
	for _, other := range []Key{{"Read", "a:b", nil}, {"Read", "A", []string{"b"}}, {"Read", "a", []string{"b", ""}}, {"Read", "a", nil}} {
		if same.Comparable() == other.Comparable() {
			t.Errorf("%v and %v are one resource", same, other)
		}
	}
	if upper := (Key{"READ", "a", []string{"b"}}); upper.Comparable() != same.Comparable() {
		t.Errorf("%v and %v are two resources", same, upper)
	}
}

func TestFieldsIdentifyACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fields    string
		toolOnly  bool
		arguments string
		want      string
		ok        bool
	}{
		{"path limit", false, `{"limit":null,"path":"\u0061","x":1}`, `t|{"path":"a","limit":null}`, true},
		{"path limit", true, `{"path":"a"}`, `t|{"path":"a","limit":null}`, true},
		{"n", true, `{"n":"1"}`, `t|{"n":"1"}`, true},
		{"n", true, `{"n":1}`, `t|{"n":1}`, true},
		{"n", true, `[]`, "", false},
		{"", true, `anything`, "t|__tool_only__", true},
		{"", false, `{"b":1,"a":[2]}`, `t|{"a":[2],"b":1}`, true},
		{"", false, ` `, `t|{}`, true},
		{"", false, `*** Begin Patch`, `t|*** Begin Patch`, true},
	} {
		got, ok := Fields("t", strings.Fields(c.fields), c.toolOnly, []byte(c.arguments))
		if got != c.want || ok != c.ok {
			t.Errorf("Fields(%q, %v, %s) = %q, %v, want %q", c.fields, c.toolOnly, c.arguments, got, ok, c.want)
		}
	}
}

// FuzzIdentify checks the readers of arguments with any bytes: they do not fail, and agree on what is an object.
func FuzzIdentify(f *testing.F) {
	f.Add([]byte(`{"path":"a","offset":NaN}`))
	f.Add([]byte(`{"path":"-Infinity`))
	f.Add([]byte(`*** Begin Patch`))
	f.Fuzz(func(t *testing.T, arguments []byte) {
		key, ok := Identify("file_read", "t", arguments)
		again, _ := Identify("file_read", "t", []byte(" "+string(arguments)+" "))
		if ok && key.Comparable() != again.Comparable() {
			t.Errorf("Identify(%q) = %v, with blanks around %v", arguments, key, again)
		}
		for _, name := range Paths("file_write", arguments) {
			if name != Clean(name) {
				t.Errorf("Paths(%q) has %q, which is not clean", arguments, name)
			}
		}
		if _, isFields := Fields("t", []string{"path"}, false, arguments); !isFields && ok && key.Primary != trim(string(arguments)) {
			t.Errorf("Identify(%q) = %v of what is no object", arguments, key)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	arguments := []byte(`{"file_path":"/repo/internal/app/file.go","content":"` + strings.Repeat(`\tline of code\n`, 300) + `"}`)
	b.SetBytes(int64(len(arguments)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Identify("file_write", "Write", arguments); !ok {
			b.Fatal("no identity")
		}
	}
}
