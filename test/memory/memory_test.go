package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMemoryIsBoundedByTheProcess does with small sessions in small processes what the program does with large ones.
func TestMemoryIsBoundedByTheProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("large sessions take half a minute of both processors: make soak")
	}
	t.Parallel()
	found, err := run(t.Context(), options{
		sessions: 2, bytes: 20_000_000, picture: 1_500_000, limit: 128 << 20, patience: 2 * time.Minute, dir: t.TempDir(),
		out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	found.print(t.Output())
	if len(found.anomalies) > 0 {
		t.Errorf("%d anomalies", len(found.anomalies))
	}
	for _, way := range slices.Concat(readings, later) {
		isAsked := func(answer string) bool { return strings.HasPrefix(answer, "GET "+way+" ") }
		if !slices.ContainsFunc(keys(found.answers), isAsked) {
			t.Errorf("nobody has read %s", way)
		}
	}
}

// TestTheOracleSeesOtherBytes gives it bodies that are not those of the log.
func TestTheOracleSeesOtherBytes(t *testing.T) {
	t.Parallel()
	whole, end, err := digestOf(strings.NewReader(`{"a":[],"messages":[{"b":[1]}]}`), true)
	if err != nil || end != "]}" {
		t.Fatal(end, err)
	}
	for _, body := range []string{`{"messages":[{"b":[2]}]}`, `{"messages":[{"b":[1]},{}]}`} {
		if other, _, _ := digestOf(strings.NewReader(body), true); other == whole {
			t.Errorf("%s is taken for another", body)
		}
	}
	if _, end, _ := digestOf(strings.NewReader(`{"messages":[{"b":[1]},{"c":`), true); end == "]}" {
		t.Error("a body that was cut off is taken for a whole one")
	}
	if _, _, err := digestOf(strings.NewReader(`{"code":"x"}`), true); err == nil {
		t.Error("a body without messages is taken for a view")
	}
}

func keys(answers map[string]int) (list []string) {
	for answer := range answers {
		list = append(list, answer)
	}
	return list
}
