package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
	"github.com/varve-dev/varve/test/harness"
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
		"a ratio that is reached":         {row{Value: 5, Goal: ">= 0.5"}.beside(10), "yes"},
		"a ratio that is missed":          {row{Value: 4, Goal: ">= 0.5"}.beside(10), "NO"},
		"a value that is below its bound": {row{Value: 400, Goal: "<= 500"}, "yes"},
		"a value that is over its bound":  {row{Value: 501, Goal: "<= 500"}, "NO"},
		"a value on its bound":            {row{Value: 500, Goal: "<= 500"}, "yes"},
		"a goal that is not set":          {row{Value: 5, Goal: notSet}.beside(10), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.row.judged().Met; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestASectionOfAPageIsReplaced(t *testing.T) {
	t.Parallel()
	page := "a\n<!-- bench: x -->\nold\n<!-- end: x -->\nb\n"
	for range 2 { // what was written is found again
		next, err := replaceSection([]byte(page), "x", "| new |\n")
		if err != nil {
			t.Fatal(err)
		}
		page = string(next)
	}
	if want := "a\n<!-- bench: x -->\n\n| new |\n\n<!-- end: x -->\nb\n"; page != want {
		t.Errorf("got %q, want %q", page, want)
	}
	if _, err := replaceSection([]byte(page), "y", ""); err == nil {
		t.Error("a section that is not there was replaced")
	}
}

func TestThePageHasEverySection(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", docsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"measurements", "replay"} {
		if _, err := replaceSection(page, name, "|"); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnknownGroupIsRefused(t *testing.T) {
	t.Parallel()
	known := []string{"engine", "append", "view"}
	found, err := chosen("view,engine", known)
	if diff := cmp.Diff([]string{"view", "engine"}, found); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := chosen("engine,views", known); err == nil {
		t.Error("an unknown group was chosen")
	}
}

func TestTheShortSessionIsAsLargeAsTheLongOne(t *testing.T) {
	t.Parallel()
	long := generated(t, session.OpenAIChat, 5_000, 0)
	old := grown(t, long)
	young := similar(t, old, long)
	if quotient := float64(bytesOf(young)) / float64(bytesOf(old)); quotient < 0.85 || quotient > 1.15 {
		t.Errorf("views of %d and %d bytes", bytesOf(young), bytesOf(old))
	}
	if len(old.Tail) < newMessages || len(young.Tail) < newMessages {
		t.Errorf("%d and %d messages after the checkpoint", len(old.Tail), len(young.Tail))
	}
}

func TestOfRepeatedBenchmarksTheBestCounts(t *testing.T) {
	t.Parallel()
	got := parseBenchmarks(`goos: linux
BenchmarkMake/a/ours  	      10	   2000 ns/op	 500.5 MB/s	    96 B/op	       7 allocs/op
BenchmarkMake/a/ours  	      10	   1000 ns/op	1001.0 MB/s	    96 B/op	       8 allocs/op
BenchmarkMake/a/floor 	      10	   3000 ns/op	     5.5 lives
PASS
`)
	want := []measured{
		{"Make/a/ours", map[string]float64{"ns/op": 1000, "MB/s": 1001, "B/op": 96, "allocs/op": 8}},
		{"Make/a/floor", map[string]float64{"ns/op": 3000, "lives": 5.5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPairIsComparedRoundByRound(t *testing.T) {
	t.Parallel()
	got := row{}.pairs([]float64{110, 180}, []float64{100, 200})
	want := row{Value: 110, Floor: 100, Ratio: 1, Spread: []float64{0.9, 1.1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSeqsAnsweredMustBeDense(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answered []seqs
		ok       bool
	}{
		"one writer, in order":       {[]seqs{{1: {5, 7, 9}, 2: {1, 3}}}, true},
		"two writers of one session": {[]seqs{{1: {5, 9}}, {1: {7, 11}}}, true},
		"a gap":                      {[]seqs{{1: {5, 9}}}, false},
		"a seq given twice":          {[]seqs{{1: {5, 7}}, {1: {7, 9}}}, false},
		"an overlap":                 {[]seqs{{1: {5, 6}}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := checkDense(test.answered, 2); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheRateOfLongSessionsStandsBesideThatOfShorterOnes(t *testing.T) {
	t.Parallel()
	found := []measured{
		{"ExtractOfRecorded/98", map[string]float64{"MB/s": 5, "MB/cpu-s": 19}}, {"Extract/100", map[string]float64{"MB/cpu-s": 80}},
		{"Extract/1000", map[string]float64{"MB/cpu-s": 60}}, {"Extract/10000", map[string]float64{"MB/cpu-s": 30}},
	}
	var judged []string
	for _, r := range extractRows(found) {
		r = r.judged()
		judged = append(judged, r.Name+" "+number(r.Value)+" "+r.Met)
	}
	want := []string{
		"summaries without a model, 98 recorded conversations 19.0 NO", "summaries without a model, 100 turns 80.0 ",
		"summaries without a model, 1000 turns 60.0 yes", "summaries without a model, 10000 turns 30.0 NO",
	}
	if diff := cmp.Diff(want, judged); diff != "" {
		t.Error(diff)
	}
}

// TestThePartsAreThere: a part that is taken out of a build stands in the sources as it is written here.
func TestThePartsAreThere(t *testing.T) {
	t.Parallel()
	var without []harness.Mutant
	for i := range engineParts {
		without = append(without, engineParts[i].without)
	}
	if err := harness.Fit(t.Context(), without); err != nil {
		t.Error(err)
	}
}
