package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operation answers a vector as the system did. It returns a value whose JSON is compared with the record. Where the
// system answers an error, that is a *failure, and the value is nil or an object with what is recorded beside the error.
// Any other error says that the vector could not be run.
type operation func(v vector) (any, error)

// operations are those of each system, by the name that vectors have for them.
var operations = map[string]map[string]operation{
	"tool-compaction": toolCompactionOperations,
	"cortex":          cortexOperations,
	"falai":           falaiOperations,
	"llm-proxy":       llmProxyOperations,
	"codelia":         codeliaOperations,
}

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := vectorsDir
	if named := os.Getenv("VARVE_VECTORS"); named != "" {
		dir = given(named)
	}
	vectors, listed := readVectors(t, dir), readDocumented(t)
	var ended [3]atomic.Int64
	t.Run("vectors", func(t *testing.T) {
		for _, v := range vectors {
			t.Run(v.ID, func(t *testing.T) {
				t.Parallel()
				ended[check(t, v, listed)].Add(1)
			})
		}
	})
	passed, different, others := ended[pass].Load(), ended[differs].Load(), ended[other].Load()
	fmt.Printf("%d vectors: %d pass, %d documented, %d other\n", passed+different+others, passed, different, others)
}

// verdict is how a vector ended.
type verdict int

const (
	other   verdict = iota // neither of the two: the test fails
	pass                   // the same to the letter
	differs                // as docs/compatibility.md says
)

func check(t *testing.T, v vector, listed documented) verdict {
	t.Helper()
	diff, err := run(v)
	ended, problem := verdictOf(v, diff, err, listed)
	if problem != "" {
		t.Error(problem)
	}
	return ended
}

// verdictOf says how a vector ended with that difference or failure, and what is wrong with that.
func verdictOf(v vector, diff string, failed error, listed documented) (ended verdict, problem string) {
	switch same := diff == "" && failed == nil; {
	case same && listed[v.ID]:
		return other, "it passes, but docs/compatibility.md lists it"
	case same:
		return pass, ""
	case listed[v.ID] || listed.class(v) || listed[lonely] && v.LoneSurrogate && diff == onlyHalves:
		return differs, ""
	case failed != nil:
		return other, fmt.Sprintf("%s/%s: %v", v.System, v.Op, failed)
	}
	return other, "(-recorded +ours):\n" + diff
}

// onlyHalves is the difference of what is equal save for halves of characters.
const onlyHalves = "half a character"

// run returns how our answer differs from the record, "" if it does not. One vector that panics does not stop the others.
func run(v vector) (diff string, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	perform, ok := operations[v.System][v.Op]
	if !ok {
		return "", errors.New("no such operation")
	}
	answer, err := perform(v)
	var failed *failure
	if errors.As(err, &failed) {
		answer, err = failed.beside(answer)
	}
	if err != nil {
		return "", err
	}
	want, err := plain(json.RawMessage(v.Output))
	if err != nil {
		return "", err
	}
	got, err := plain(answer)
	if err != nil {
		return "", err
	}
	diff = cmp.Diff(want, got)
	if diff != "" && v.LoneSurrogate && cmp.Equal(withoutReplacements(want), withoutReplacements(got)) {
		return onlyHalves, nil
	}
	return diff, nil
}

// TestVectorsAreThoseThatWereRecorded compares the copies in testdata with the originals, where those are.
func TestVectorsAreThoseThatWereRecorded(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(originalDir); err != nil {
		t.Logf("no originals: %v", err)
		return
	}
	want := map[string]string{}
	for _, v := range readVectors(t, originalDir) {
		if v.Scope == "seed" {
			want[v.System+"/"+v.ID+".json"] = fileText(t, filepath.Join(originalDir, v.System, v.ID+".json"))
		}
	}
	got := map[string]string{}
	for _, v := range readVectors(t, vectorsDir) {
		got[v.System+"/"+v.ID+".json"] = fileText(t, filepath.Join(vectorsDir, v.System, v.ID+".json"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copies of the vectors (-original +copy):\n%s", diff)
	}
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
