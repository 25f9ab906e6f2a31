package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/zframe"
)

func TestTheCorpusIsTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(newCorpus(3).conversation(21, 800), newCorpus(3).conversation(21, 800)); diff != "" {
		t.Error(diff)
	}
}

func TestTheCorpusCompressesLikeConversations(t *testing.T) {
	t.Parallel()
	body := joined(newCorpus(1).conversation(101, 1300))
	ratio := float64(len(body)) / float64(len(zframe.Compress(body)))
	t.Logf("%d bytes, ratio %.2f", len(body), ratio)
	if ratio < 3.3 || ratio > 3.9 {
		t.Errorf("%d bytes compress by %.2f, not by about 3.5", len(body), ratio)
	}
}

func TestAMessageHasTheSizeAskedFor(t *testing.T) {
	t.Parallel()
	for size := 100; size < 3000; size += 7 {
		message := newCorpus(uint64(size)).message(size)
		if len(message) != size || !json.Valid(message) {
			t.Fatalf("message of %d bytes instead of %d: %s", len(message), size, message)
		}
	}
}

func TestParametersWithoutAValueBecomeNull(t *testing.T) {
	t.Parallel()
	got := withVariables(`SELECT $1::text, $2, $10, $11::text IS NOT NULL`, map[int]string{1: "a", 10: "b"}, 2)
	if want := `SELECT :p1::text, :p2, :p10, NULL::text IS NOT NULL`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestPercentileIsAValueThatWasMeasured(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	got := []float64{percentile(values, 0.01), median(values), percentile(values, 0.99), median(values[:2])}
	if diff := cmp.Diff([]float64{1, 3, 5, 1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestARowIsJudgedByItsRatioIfItHasAFloor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row  row
		want string
	}{
		"no goal":                         {row{Value: 1}, ""},
		"a ratio that is reached":         {row{Value: 5, Goal: atLeast(0.5)}.beside(10), "yes"},
		"a ratio that is missed":          {row{Value: 4, Goal: atLeast(0.5)}.beside(10), "NO"},
		"a value that is below its bound": {row{Value: 400, Goal: atMost(500)}, "yes"},
		"a value that is over its bound":  {row{Value: 501, Goal: atMost(500)}, "NO"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.row.verdict(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDenseSeesGapsAndDuplicates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		first []int64
		ok    bool
	}{
		"in any order": {[]int64{4, 2, 3}, true},
		"a gap":        {[]int64{2, 4}, false},
		"a duplicate":  {[]int64{2, 2, 3}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := collector{first: test.first}
			if err := c.dense(1); (err == nil) != test.ok {
				t.Errorf("dense(%v) = %v", test.first, err)
			}
		})
	}
}
