package main

const meterCode = `// Package meter counts what happens in a process.
package meter

import "sync/atomic"

// Counter is a number that only grows.
type Counter struct{ n atomic.Int64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value is the number.
func (c *Counter) Value() int64 { return c.n.Load() }
`

const meterTest = `package meter

import "testing"

func TestCounter(t *testing.T) {
	t.Parallel()
	var c Counter
	c.Inc()
	c.Inc()
	if got := c.Value(); got != 2 {
		t.Errorf("Value is %d, want 2", got)
	}
}
`

const tallyCode = `// Package tally sums up what a worker did.
package tally

import "github.com/varve-dev/varve/internal/meter"

// Work is what a worker counts.
type Work struct {
	Done, Failed meter.Counter
}

// End counts one job by how it ended.
func (w *Work) End(err error) {
	if err != nil {
		w.Failed.Inc()
		return
	}
	w.Done.Inc()
}
`

const tallyReport = `package tally

import "fmt"

// Report is one line about the work.
func (w *Work) Report() string {
	total := w.Done.Value() + w.Failed.Value()
	return fmt.Sprintf("%d jobs, %d of them failed", total, w.Failed.Value())
}
`

const tallyTest = `package tally

import (
	"errors"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	var w Work
	w.End(nil)
	w.End(errors.New("no disk"))
	w.End(nil)
	if got, want := w.Report(), "3 jobs, 1 of them failed"; got != want {
		t.Errorf("Report is %q, want %q", got, want)
	}
	if w.Done.Value() != 2 {
		t.Errorf("Done is %d, want 2", w.Done.Value())
	}
}
`

// followARename changes a method that others call and goes where the compiler leads.
func followARename(s *story) error {
	for name, text := range map[string]string{
		"internal/meter/meter.go": meterCode, "internal/meter/meter_test.go": meterTest,
		"internal/tally/tally.go": tallyCode, "internal/tally/report.go": tallyReport, "internal/tally/tally_test.go": tallyTest,
	} {
		if err := s.work.write(name, text); err != nil {
			return err
		}
	}
	s.said.system = agentPrompt
	s.user("In internal/meter, Counter.Inc should become Add(n int64) and Value should become Total, so that we can count bytes too. Please rename and follow the compiler through the repository. First make yourself familiar with the code that counts or measures something: I want the names to agree.")
	s.assistant("I look at the package and at who uses it.", read("internal/meter/meter.go"), read("internal/meter/meter_test.go"), search(`internal/meter`, ".go"))
	s.assistant("One package uses it.", read("internal/tally/tally.go"), read("internal/tally/report.go"))
	s.until(24_000,
		question{"What else counts here?", `[Tt]otal|[Cc]ount\b`, ".go"},
		question{"And which names do statistics have?", `[Ss]tats?\b|[Tt]okens +int`, ".go"},
	)
	s.mustPass("Everything compiles before I start.", shell("go build ./internal/meter ./internal/tally && go vet ./internal/meter ./internal/tally && go test ./internal/meter ./internal/tally", "State before the change"))
	s.mustFail("I rename the methods and let the compiler speak.",
		edit("internal/meter/meter.go", "// Inc adds one.\nfunc (c *Counter) Inc() { c.n.Add(1) }", "// Add adds n.\nfunc (c *Counter) Add(n int64) { c.n.Add(n) }"),
		edit("internal/meter/meter.go", "// Value is the number.\nfunc (c *Counter) Value()", "// Total is the number.\nfunc (c *Counter) Total()"),
		shell("go build ./internal/meter ./internal/tally", "Build"))
	s.mustFail("The worker's side first.", edit("internal/tally/tally.go", "w.Failed.Inc()", "w.Failed.Add(1)"), edit("internal/tally/tally.go", "w.Done.Inc()", "w.Done.Add(1)"), shell("go build ./internal/tally", "Build"))
	s.assistant("Now the report. Value stands there three times, so a single replacement will not do.", edit("internal/tally/report.go", "Value()", "Total()"))
	s.assistant("As expected: I replace the two lines as they are.", read("internal/tally/report.go"),
		edit("internal/tally/report.go", "w.Done.Value() + w.Failed.Value()", "w.Done.Total() + w.Failed.Total()"), edit("internal/tally/report.go", "total, w.Failed.Value()", "total, w.Failed.Total()"))
	s.mustFail("It builds; the tests may still use the old names.", shell("go build ./internal/tally", "Build"), shell("go vet ./internal/meter ./internal/tally", "Vet, tests included"))
	s.user("While you are at it: do the exported names elsewhere follow one rule for “how many” and “how much”? Give me an overview, package by package, before you fix the tests.")
	s.assistant("I begin with the exported documentation.", shell("go doc -all ./internal/session", "Documentation of session"), shell("go doc -all ./internal/wire", "Documentation of wire"))
	s.until(58_000,
		question{"Numbers in structures.", `^\t[A-Z][A-Za-z, ]* +(int|int32|int64|float64)\b`, ".go"},
		question{"Functions that return a number.", `^func .*\) \(?(int|int64|float64)\b`, ".go"},
		question{"Columns that hold numbers.", `(bigint|integer|smallint)`, ".sql"},
		question{"And their names in JSON.", `json:"[a-z_]*(tokens|bytes|count|seq|total)`, ".go"},
	)
	s.assistant("The tests, one after another.", edit("internal/meter/meter_test.go", "\tc.Inc()\n\tc.Inc()", "\tc.Add(1)\n\tc.Add(1)"),
		edit("internal/meter/meter_test.go", "got := c.Value(); got != 2 {\n\t\tt.Errorf(\"Value is", "got := c.Total(); got != 2 {\n\t\tt.Errorf(\"Total is"), read("internal/tally/tally_test.go"))
	s.mustPass("And the other package's.", edit("internal/tally/tally_test.go", "\tif w.Done.Value() != 2 {\n\t\tt.Errorf(\"Done is %d, want 2\", w.Done.Value())", "\tif got := w.Done.Total(); got != 2 {\n\t\tt.Errorf(\"Done is %d, want 2\", got)"),
		shell("go vet ./internal/meter ./internal/tally && go test -v ./internal/meter ./internal/tally", "Vet and test"))
	s.user("Add must refuse negative numbers: a counter only grows. Panic, as the standard library does for such mistakes, and test it. Have a look at whether we panic anywhere else, and how tests expect it.")
	s.until(84_000,
		question{"Where does this repository panic?", `panic\(|recover\(\)`, ".go"},
		question{"How do tests compare?", `cmp\.Diff|t\.(Error|Fatal)f`, ".go"},
		question{"What is behind a lock or an atomic?", `sync\.|atomic\.`, ".go"},
	)
	s.mustFail("Test first.", shell(`cat >> internal/meter/meter_test.go <<'END'

func TestAddRefusesNegativeNumbers(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Add(-1) did not panic")
		}
	}()
	new(Counter).Add(-1)
}
END
gofmt -l internal/meter`, "Append the test"), shell("go test ./internal/meter", "See it fail"))
	s.mustPass("Now the check.", read("internal/meter/meter.go"),
		edit("internal/meter/meter.go", "func (c *Counter) Add(n int64) { c.n.Add(n) }", "func (c *Counter) Add(n int64) {\n\tif n < 0 {\n\t\tpanic(\"meter: a counter only grows\")\n\t}\n\tc.n.Add(n)\n}"),
		shell("gofmt -l internal; go test -v ./internal/meter ./internal/tally", "Test"))
	s.user("Does the rest of the repository still build, and what does all of it depend on? I would also like a last look at the places that will count bytes.")
	s.assistant("The dependencies of the commands, and the compiler's remarks on the small packages.", shell("go list -deps ./cmd/api | sort | uniq | head -n 400", "Dependencies of the API"), shell("go build ./internal/meter ./internal/tally ./internal/session ./internal/wire && go build -gcflags=-m ./internal/zframe 2>&1 | head -n 150", "Build"))
	s.until(125_000,
		question{"Bytes, wherever they are counted.", `[Bb]ytes\b.*(len|\+=)|len\(.*[Bb]od(y|ies)`, ".go"},
		question{"What is logged with a number?", `slog|Log\.|InfoContext`, ".go"},
		question{"What do the documents say about figures?", `[0-9]+ (ms|MB|KiB|tokens|bytes)`, ".md"},
		question{"Which types are exported?", `^type [A-Z]`, ".go"},
		question{"And where are they made?", `func New[A-Z]?`, ".go"},
	)
	s.mustPass("One last run over all that I touched.", read("internal/meter/meter.go"), read("internal/tally/report.go"), shell("go vet ./internal/meter ./internal/tally && go test -count=1 ./internal/meter ./internal/tally", "Vet and test"))
	s.assistant("Done. Counter has Add, which refuses negative numbers, and Total; tally and all tests follow. Elsewhere a sum is called total, a size bytes or tokens, and a position seq.")
	return s.failure
}
