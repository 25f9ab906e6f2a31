package memory

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/tokens"
)

// everything reports that a message has left the view.
func everything(int64) bool { return true }

func TestIndexHasWhatWasUsedLately(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(200) {
		m.Pass(500)
		m.Note(fmt.Appendf(nil, "read src/file%d.go", seq), Source{Seq: seq + 1, Weight: 1})
		if seq%10 == 0 {
			m.Note([]byte("edit src/often.go"), Source{Seq: seq + 1, Weight: 1})
		}
	}
	index := m.Choose().Index(100)
	if n := tokens.Estimate([]byte(index)); n > 100 || n < 70 {
		t.Errorf("%d tokens where 100 are allowed: %s", n, index)
	}
	for name, want := range map[string]bool{"src/often.go": true, "src/file199.go": true, "src/file1.go": false} {
		if strings.Contains(index, name) != want {
			t.Errorf("%s: got %v in %s", name, !want, index)
		}
	}
	choice := m.Choose()
	choice.Show(m.NamesIn(nil, []byte(`{"path":"/home/src/often.go"}`), true))
	if index := choice.Index(100); strings.Contains(index, "src/often.go") {
		t.Errorf("a name that the view has is in the index: %s", index)
	}
}

func TestNamesOfOneResultShareItsWeight(t *testing.T) {
	t.Parallel()
	var m Memory
	m.Pass(100)
	var listing strings.Builder
	for i := range 500 {
		fmt.Fprintf(&listing, "dir/entry%d.txt\n", i)
	}
	m.Note([]byte(listing.String()), Source{Seq: 1, Weight: 1, Shared: true})
	m.Note([]byte("port 48213 of zz_service"), Source{Seq: 2, Weight: 1, Shared: true})
	index := m.Choose().Index(40)
	if !strings.Contains(index, "port 48213") || !strings.Contains(index, "zz_service") {
		t.Errorf("a short result's names are missing beside a long listing: %s", index)
	}
}

func TestLinesBeginWithTheMessagesOfTheirNames(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(30) {
		m.Pass(10)
		m.Note(fmt.Appendf(nil, "symbol_%02d", seq+1), Source{Seq: seq + 1, Weight: 1})
	}
	got := strings.Split(m.Choose().Index(1000), "\n")
	if len(got) != 3 || !strings.HasPrefix(got[0], "m1-12: symbol_01 ") || !strings.HasPrefix(got[2], "m25-30: ") {
		t.Errorf("got %q", got)
	}
}

func TestWordsAreWholeWhileTheyFit(t *testing.T) {
	t.Parallel()
	var m Memory
	m.Say(3, "  never touch the tests\n")
	m.Say(9, "")
	m.Say(12, "and use port 8080")
	if got, want := m.Words(1000, everything), "[m3] never touch the tests\n[m12] and use port 8080"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := m.Words(1000, func(seq int64) bool { return seq < 12 }); got != "[m3] never touch the tests" {
		t.Errorf("words that are still in the view: %q", got)
	}
}

func TestALongPasteIsCutBeforeShortWords(t *testing.T) {
	t.Parallel()
	var m Memory
	m.Say(1, "fix the parser, never the tests")
	m.Say(2, "see: "+strings.Repeat("a pasted line of a log\n", 500)+"what is wrong here?")
	m.Say(3, "go on")
	for range 3 { // what was cut stays as it is
		got := m.Words(300, everything)
		if n := tokens.Estimate([]byte(got)); n > 330 || n < 200 {
			t.Errorf("%d tokens where 300 are allowed", n)
		}
		for _, want := range []string{"[m1] fix the parser, never the tests\n", "whole: m2", "wrong here?\n[m3] go on"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in %q", want, got)
			}
		}
	}
}

func TestTheOldestWordsButTheFirstGoLast(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(100) {
		m.Say(seq+1, fmt.Sprintf("demand %d: %s", seq+1, strings.Repeat("word ", 40)))
	}
	got := m.Words(1000, everything)
	if n := tokens.Estimate([]byte(got)); n > 1100 {
		t.Errorf("%d tokens where 1000 are allowed", n)
	}
	for want, is := range map[string]bool{"demand 1:": true, "demand 2:": false, "demand 100:": true} {
		if strings.Contains(got, want) != is {
			t.Errorf("%s: got %v in %q", want, !is, got)
		}
	}
}

func TestEncodeKeepsEverything(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(50) {
		m.Pass(700)
		m.Say(seq+1, fmt.Sprintf("demand number %d", seq+1))
		m.Note(fmt.Appendf(nil, "src/file%d.go max_retries=%d", seq%17, 10+seq), Source{Seq: seq + 1, Weight: 1})
	}
	m.Prune(20)
	encoded := m.Encode()
	read, err := Decode(string(encoded))
	if err != nil {
		t.Fatal(err)
	}
	if string(read.Encode()) != string(encoded) {
		t.Error("what was read is encoded differently")
	}
	if got, want := read.Choose().Index(200), m.Choose().Index(200); got != want || got == "" {
		t.Errorf("got the index %q, want %q", got, want)
	}
	for n := range encoded {
		if _, err := Decode(string(encoded[:n])); err == nil {
			t.Fatalf("%d of %d bytes are accepted", n, len(encoded))
		}
	}
}

func TestAVeryLongLogTakesNoMoreMemory(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(2000) {
		m.Pass(500)
		text := []byte("src/often.go ")
		for i := range 100 {
			text = fmt.Appendf(text, "name_%d_%d ", seq, i)
		}
		m.Note(text, Source{Seq: seq + 1, Weight: 1, Shared: true})
		if len(m.known) > mostKnown {
			t.Fatalf("%d names are kept", len(m.known))
		}
	}
	if index := m.Choose().Index(200); !strings.Contains(index, "src/often.go") {
		t.Errorf("the name that every message has is not in the index: %s", index)
	}
}

// BenchmarkWords has room for few of the texts. Its time a text must not grow with their number.
func BenchmarkWords(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				var m Memory
				for i := range n {
					m.Say(int64(i+1), "Take the next of the open tasks, please, and go through all of its steps.")
				}
				m.Words(1000, func(int64) bool { return true })
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/text")
		})
	}
}
