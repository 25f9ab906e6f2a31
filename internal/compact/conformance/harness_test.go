package conformance

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyWhatIsListedMayDiffer(t *testing.T) {
	t.Parallel()
	listed := documented{"known": true, "s/later": true, "s/seed": true, lonely: true}
	for _, c := range []struct {
		name   string
		v      vector
		diff   string
		failed error
		want   verdict
	}{
		{"the same", vector{ID: "a"}, "", nil, pass},
		{"different", vector{ID: "a"}, "-1 +2", nil, other},
		{"not to be run", vector{ID: "a"}, "", errors.New("no such operation"), other},
		{"different and listed", vector{ID: "known"}, "-1 +2", nil, differs},
		{"the same, but listed", vector{ID: "known"}, "", nil, other},
		{"of a listed class", vector{ID: "a", System: "s", Op: "later", Scope: "later"}, "", errors.New("no such operation"), differs},
		{"owed, so that no class helps", vector{ID: "a", System: "s", Op: "seed", Scope: "seed"}, "-1 +2", nil, other},
		{"different by half a character", vector{ID: "a", LoneSurrogate: true}, onlyHalves, nil, differs},
		{"different by more", vector{ID: "a", LoneSurrogate: true}, "-1 +2", nil, other},
		{"different by half a character without a reason", vector{ID: "a"}, onlyHalves, nil, other},
	} {
		got, problem := verdictOf(c.v, c.diff, c.failed, listed)
		if got != c.want || (problem != "") != (got == other) {
			t.Errorf("%s: verdict %d with problem %q, want %d", c.name, got, problem, c.want)
		}
	}
}

func TestAnswersAreComparedByTheirValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"a":1e0}`, true},
		{`12345678901234567890`, `12345678901234567891`, false},
		{`1`, `"1"`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":null}`, `{}`, false},
	} {
		a, err := plain(json.RawMessage(c.a))
		if err != nil {
			t.Fatal(err)
		}
		b, err := plain(json.RawMessage(c.b))
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(a, b) != c.same {
			t.Errorf("%s and %s: the same is not %v", c.a, c.b, c.same)
		}
	}
}

func TestAnErrorStandsBesideWhatElseWasRecorded(t *testing.T) {
	t.Parallel()
	got, err := (&failure{"Error", "stop"}).beside(map[string]any{"calls": []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := plain(json.RawMessage(`{"calls":[1],"error":{"name":"Error","message":"stop"}}`))
	answer, err := plain(got)
	if diff := cmp.Diff(want, answer); diff != "" || err != nil {
		t.Errorf("answer (-want +got):\n%s (%v)", diff, err)
	}
}
