package main

const agentPrompt = `You are a coding agent that works on the Go repository in /repo with the tools Read, Grep, Bash, Edit and Write. Look before you change, keep changes small, and run the tests after every change. Say in a sentence what you do next.`

const labelsFirst = `// Package labels checks the labels that a caller puts on a session.
package labels

import "fmt"

// How many labels a session has at most, and how long one is.
const (
	MaxLabels = 16
	MaxBytes  = 64
)

// Check says what is wrong with labels, nil for nothing.
func Check(labels []string) error {
	if len(labels) > MaxLabels {
		return fmt.Errorf("%d labels, but a session has %d at most", len(labels), MaxLabels)
	}
	for i, label := range labels {
		if utf8.RuneCountInString(label) > MaxBytes {
			return fmt.Errorf("label %d has %d bytes, but %d are possible", i, len(label), MaxBytes)
		}
	}
	return nil
}
`

const labelsTest = `package labels

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		labels []string
		ok     bool
	}{
		{"no label is fine", nil, true},
		{"as many as possible are fine", many(MaxLabels), true},
		{"one more is refused", many(MaxLabels + 1), false},
		{"a label of the largest size is fine", []string{strings.Repeat("a", MaxBytes)}, true},
		{"one byte more is refused", []string{strings.Repeat("a", MaxBytes+1)}, false},
		{"bytes count, not characters", []string{strings.Repeat("ä", MaxBytes/2+1)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := Check(tt.labels); (err == nil) != tt.ok {
				t.Errorf("Check: %v, but ok should be %v", err, tt.ok)
			}
		})
	}
}

func many(n int) []string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = strings.Repeat("x", i+1)
	}
	return labels
}
`

const labelsDuplicates = `
	seen := map[string]bool{}
	for i, label := range labels {
		if seen[label] {
			return fmt.Errorf("label %d is there already", i)
		}`

const labelsDuplicatesTest = `		{"a label that is there already is refused", []string{"a", "b", "a"}, false},
		{"the same word in capitals is another label", []string{"a", "A"}, true},
`

// addALimit is a feature with its test: look how others do it, write it, make it compile, make it right, extend it.
func addALimit(s *story) error {
	s.said.system = agentPrompt
	s.user("Sessions get labels soon. Please add a package internal/labels with the limits (16 labels of 64 bytes) and a Check that the API can call, with tests. Before you write anything, look at how this repository declares and enforces its other limits, so that it fits in.")
	s.assistant("I begin with an overview of the packages.", shell("go list ./...", "List packages"), shell("wc -l $(find . -name '*.go' | sort)", "Size of every file"))
	s.until(27_000,
		question{"Where are limits declared, and who refers to them?", `Max[A-Z][A-Za-z]+`, ".go"},
		question{"How are such problems reported to the caller?", `session\.Invalid|InvalidError`, ".go"},
		question{"And what do the documents promise about limits?", `[Ll]imit`, ".md"},
	)
	s.assistant("I have seen enough to write the package.", write("internal/labels/labels.go", labelsFirst), write("internal/labels/labels_test.go", labelsTest))
	s.mustFail("Does it compile?", shell("go build ./internal/labels", "Build the new package"))
	s.assistant("An import is missing.", edit("internal/labels/labels.go", `import "fmt"`, "import (\n\t\"fmt\"\n\t\"unicode/utf8\"\n)"))
	s.mustFail("Now the tests.", shell("go test ./internal/labels", "Test the new package"))
	s.assistant("The test about bytes fails: I count characters, as the code shows.", read("internal/labels/labels.go"), search(`RuneCount`, ".go"))
	s.assistant("The limit is in bytes, so the length is right and the import goes away again.",
		edit("internal/labels/labels.go", "utf8.RuneCountInString(label)", "len(label)"), edit("internal/labels/labels.go", "\n\t\"unicode/utf8\"", ""))
	s.mustPass("Once more, with vet and gofmt.", shell("gofmt -l internal/labels; go vet ./internal/labels && go test ./internal/labels", "Check the package"))
	s.user("Good. A label given twice should be refused as well. And check whether the places that handle metadata today have tests for their limits: I want to know which kinds of cases they cover.")
	s.until(62_000,
		question{"First the metadata, as it is handled today.", `[Mm]etadata`, ".go"},
		question{"Which tests are there for limits?", `func Test[A-Za-z]*(Limit|Max|Large|TooMany|Refuse|Invalid|Reject)`, ".go"},
		question{"What does the schema itself enforce?", `CHECK|REFERENCES|UNIQUE`, ".sql"},
		question{"Where are errors turned into answers?", `errors\.(Is|As)\(`, ".go"},
	)
	s.assistant("Now the duplicates, test first.", read("internal/labels/labels_test.go"),
		edit("internal/labels/labels_test.go", "\t\t{\"bytes count, not", labelsDuplicatesTest+"\t\t{\"bytes count, not"))
	s.mustFail("The new case has to fail before there is code for it.", shell("go test ./internal/labels", "See the new case fail"))
	s.mustFail("I add the check to the loop.", edit("internal/labels/labels.go", "\n\tfor i, label := range labels {", labelsDuplicates), shell("go test -v ./internal/labels", "Test, all cases shown"))
	s.assistant("I look a label up but never remember it.", read("internal/labels/labels.go"),
		edit("internal/labels/labels.go", "is there already\", i)\n\t\t}", "is there already\", i)\n\t\t}\n\t\tseen[label] = true"))
	s.mustPass("Again.", shell("go vet ./internal/labels && go test -v ./internal/labels", "Test, all cases shown"))
	s.user("Write the limit into the API document too, at the end, and show me what the exported documentation of the packages around it looks like now. Then go through the rest of the repository and tell me where else a list from a caller is not bounded.")
	s.assistant("One line at the end of the document.", shell("mkdir -p docs && printf '%s\\n' '* Labels: 16 a session, each 64 bytes at most, none of them twice.' >> docs/api.md && tail -n 5 docs/api.md", "Append to the API document"))
	s.assistant("The documentation, as a reader of the packages sees it.", shell("go doc -all ./internal/labels", "Documentation of labels"), shell("go doc -all ./internal/session", "Documentation of session"))
	s.until(101_000,
		question{"Lists that come from outside: what is decoded into slices?", `\[\][A-Za-z.]+ +.json:`, ".go"},
		question{"What loops over a caller's input?", `for .* range .*(Messages|Parts|items|list)`, ".go"},
		question{"Are there bounds on time as well?", `time\.(Second|Minute|Hour)|WithTimeout`, ".go"},
		question{"How much is read of a body or a file?", `io\.|LimitReader|ReadAll|MaxBytes`, ".go"},
	)
	s.assistant("I run the tests of the packages that I read most.", shell("go test ./internal/rawjson ./internal/wire ./internal/zframe ./internal/session ./internal/labels", "Fast tests"), shell("go vet ./internal/labels ./internal/session", "Vet"))
	s.user("Before we finish: are the limits used the same way in SQL and in Go? Look at the migrations again.")
	s.until(124_000,
		question{"The migrations, from the tables down.", `CREATE TABLE|ALTER TABLE`, ".sql"},
		question{"And the statements in Go that write these tables.", `INSERT INTO|UPDATE `, ".go"},
		question{"What reads them?", `SELECT|FROM `, ".go"},
		question{"Which functions take a context?", `ctx context\.Context`, ".go"},
		question{"What is exported at all?", `^func [A-Z(]`, ".go"},
	)
	s.mustPass("A last look at the whole package, and its tests.", read("internal/labels/labels.go"), read("internal/labels/labels_test.go"), shell("go test -count=1 ./internal/labels", "Test"))
	s.assistant("Done: internal/labels checks count, size and duplicates, with tests, and the API document names the limit. Go enforces limits before a statement runs; SQL only keeps what must never be broken. What reads a caller's list checks its length where it decodes it.")
	return s.failure
}
