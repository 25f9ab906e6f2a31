package failure_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/failure"
)

func TestShows(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line\n", 1000)
	for text, want := range map[string]struct{ read, run bool }{
		"":                                      {false, false},
		"package main\n":                        {false, false},
		"Error: ENOENT: no such file":           {true, true},
		"  \nerror: nothing there":              {true, true},
		"Errors are values. A text about them.": {false, false},
		"<tool_use_error>File does not exist.</tool_use_error>": {true, true},
		"Exit code 1\n--- FAIL: TestX":                          {false, true},
		"Exit code 0\nok":                                       {false, false},
		long + "\nProcess exited with code 2":                   {false, true},
		long + "\n[exit status: 0]":                             {false, false},
		"<exit_code>127</exit_code>":                            {false, true},
		"Return code: 3":                                        {false, true},
		`{"error": "Unknown tool name"}`:                        {true, true},
		`{"error": null, "rows": 3}`:                            {false, false},
		`{"error": {"code": 404}}`:                              {true, true},
		`{"output": "x", "metadata": {"exit_code": 1}}`:         {true, true},
		`{"output": "Error: x", "metadata": {"exit_code": 0}}`:  {false, false},
		`{"success": false}`:                                    {true, true},
		`{"isError": true, "content": []}`:                      {true, true},
		`{"errors": 0, "name": "error"}`:                        {false, false},
		`{"error": `:                                            {false, false},
		"our tool says no":                                      {true, true},
	} {
		more := []string{"Our tool says no"}
		if got := failure.Shows([]byte(text), false, more); got != want.read {
			t.Errorf("%.60q, not a command: %t", text, got)
		}
		if got := failure.Shows([]byte(text), true, more); got != want.run {
			t.Errorf("%.60q, a command: %t", text, got)
		}
	}
}
