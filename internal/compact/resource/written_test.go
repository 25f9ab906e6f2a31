package resource

import "testing"

func TestWrittenIsWhatStandsInTheFileAfterwards(t *testing.T) {
	t.Parallel()
	const text = "func handle(w io.Writer) error {\n\treturn nil\n}"
	const quoted = `"func handle(w io.Writer) error {\n\treturn nil\n}"`
	const old = `"func handle(writer io.Writer) (err error) { return }"`
	for arguments, want := range map[string]string{
		`{"file_path":"/a/quite/long/path/to/a/file/of/the/project/a.go","content":` + quoted + `}`:                           text,
		`{"path":"a.go","old_string":` + old + `,"new_string":` + quoted + `}`:                                                text,
		`{"path":"a.go","edits":[{"oldText":` + old + `,"newText":` + quoted + `}]}`:                                          text,
		`{"path":"a.go","new_string":"x"}`:                                                                                    "",
		`{"input":"*** Begin Patch\n*** Update File: a.go\n@@ func handle\n-\treturn err\n+\treturn nil\n }\n*** End Patch"}`: "\treturn nil\n}\n",
		"*** Begin Patch\n*** Add File: a.go\n+package a\n*** End Patch":                                                      "package a\n",
	} {
		if got := Written([]byte(arguments)); got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}
