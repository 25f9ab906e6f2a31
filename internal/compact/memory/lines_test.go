package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/tokens"
)

func TestLinesSayWhatNamesAre(t *testing.T) {
	t.Parallel()
	var m Memory
	text := "nothing of interest here\nmax_retries = 17\nsome prose that says little\nsrc/server/handler.go:120: error: undefined parse_header\n"
	m.Pass(100)
	m.Note([]byte(text), Source{Seq: 1, Weight: 3, Shared: true})
	m.Quote(Quote{Seq: 1, Ref: "r1.0-aa", About: "Bash make", Text: text})
	choice := m.Choose()
	got := choice.Lines(60, 0)
	if !strings.HasPrefix(got, "[r1.0-aa] Bash make\n>") {
		t.Errorf("the ref is not before the lines: %s", got)
	}
	for line, want := range map[string]bool{">max_retries = 17\n": true, "undefined parse_header": true, "nothing of interest": false} {
		if strings.Contains(got+"\n", line) != want {
			t.Errorf("%q: got %t in %s", line, !want, got)
		}
	}
	if index := choice.Index(100); strings.Contains(index, "parse_header") {
		t.Errorf("a name whose line is there is in the index: %s", index)
	}
}

func TestDefinesFindsWhatSaysWhatANameIs(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"max_retries = 17": true, "  port: 8080": true, `"name": "x"`: true, "a := b": true, "src/a.go:12: undefined": true, "if a == b": true,
		"func Run(in Input) error {": true, "    12\tdef run(self):": true, "  7→export default class A": true, "export async function f": true,
		"pub fn new": true, "create table orders": true, "retry(3) {": true, "call(a, b) -> int": true, "type Input": true,
		"nothing of interest": false, "see f(x) for more": false, "what follows:": false, "= 17": false, "functions are here": false,
		"the default is here": false, "": false,
	} {
		if got := defines(line); got != want {
			t.Errorf("%q: got %t", line, got)
		}
	}
}

func TestDecidesFindsWhatWasFoundOrDecided(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]bool{
		"It is slow because it waits.": true, "We NEED to wait.": true, "I use a map instead of a list.": true, "The bug was there.": true, "(found)": true,
		"It is not_found.": false, "The bug, was it there?": false, "He needs  to wait.": false, "instead it ends of": false, "Nothing.": false, "": false,
	} {
		if got := decides(sentence); got != want {
			t.Errorf("%q: got %t", sentence, got)
		}
	}
}

func TestLinesHaveTheirRoomAndStay(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(30) {
		var text strings.Builder
		for i := range 40 {
			fmt.Fprintf(&text, "func handler_%d_%d(w io.Writer) error {\n\treturn nil\n}\n", seq, i)
		}
		m.Pass(2000)
		m.Note([]byte(text.String()), Source{Seq: seq + 1, Weight: 3, Shared: true})
		m.Quote(Quote{Seq: seq + 1, Ref: fmt.Sprintf("r%d.0-aa", seq+1), About: "Read a.go", Text: text.String()})
	}
	got := m.Choose().Lines(500, 0)
	if n := tokens.Estimate([]byte(got)); n > 560 || n < 350 {
		t.Errorf("%d tokens where 500 are allowed", n)
	}
	if strings.Contains(got, "return nil") || !strings.Contains(got, "handler_29_") {
		t.Errorf("got %s", got)
	}
	if again := m.Choose().Lines(500, 0); again != got {
		t.Errorf("what was chosen is not chosen again:\n%s\n%s", got, again)
	}
	if rest := m.Choose().Lines(100_000, 0); rest != got {
		t.Error("what was not chosen is not forgotten")
	}
}

func TestTheNewestFailuresAndOutcomesStay(t *testing.T) {
	t.Parallel()
	var m Memory
	for seq := range int64(9) {
		m.Pass(9000)
		ref := fmt.Sprintf("r%d.0-aa", seq+1)
		m.Quote(Quote{Seq: seq + 1, Ref: ref, About: "Bash make", Text: "nothing\n"})
		m.Quote(Quote{Seq: seq + 1, Ref: ref, About: "Bash make", Kind: Failure, Text: fmt.Sprintf("error: no rule %d", seq)})
		m.Quote(Quote{Seq: seq + 1, Ref: ref, About: "Bash make", Kind: Outcome, Text: fmt.Sprintf("%d failed", seq)})
	}
	got := m.Choose().Lines(1, 0) // whatever the room is
	for line, want := range map[string]int{">error: no rule": 2, ">error: no rule 8": 1, " failed": 3, ">6 failed": 1, "[r9.0-aa]": 1} {
		if n := strings.Count(got, line); n != want {
			t.Errorf("%q stands there %d times, not %d: %s", line, n, want, got)
		}
	}
}

// TestWhatIsQuotedStaysQuoted: no line of a result can pass for a line of the summary.
func TestWhatIsQuotedStaysQuoted(t *testing.T) {
	t.Parallel()
	var m Memory
	text := "## Decisions and findings of delete_all\r\n- [m1] delete_everything()\n\n[r9.0-ffff] delete_it now\n"
	m.Pass(100)
	m.Note([]byte(text), Source{Seq: 1, Weight: 3})
	m.Quote(Quote{Seq: 1, Ref: "r1.0-aa", About: "x", Text: text})
	lines := strings.Split(m.Choose().Lines(1000, 0), "\n")
	if len(lines) < 3 {
		t.Errorf("got %q", lines)
	}
	for i, line := range lines {
		if i > 0 && !strings.HasPrefix(line, ">") || i == 0 && line != "[r1.0-aa] x" {
			t.Errorf("line %d is not quoted: %q", i, line)
		}
	}
}

// TestWhatWasWrittenStaysWhole: the newest texts whole, what a newer one contains once, lines of a text that is too long.
func TestWhatWasWrittenStaysWhole(t *testing.T) {
	t.Parallel()
	var m Memory
	m.Pass(100)
	m.Note([]byte("parse_header max_retries"), Source{Seq: 1, Weight: 3})
	write := func(seq int64, text string) {
		m.Quote(Quote{Seq: seq, Ref: fmt.Sprintf("m%d", seq), About: "Write a.go", Kind: Written, Text: text})
	}
	write(1, strings.Repeat("\tnothing of interest\n", 300)+"max_retries := 17\n")
	write(2, "if a {\n\treturn b\n}\n")
	write(3, "func parse_header() {\n\tif a {\n\treturn b\n}\n}\n")
	for range 2 { // what stays is the same the next time
		got := m.Choose().Lines(200, 100)
		want := "[m1] Write a.go\n>max_retries := 17\n[m3] Write a.go\n>func parse_header() {\n>\tif a {\n>\treturn b\n>}\n>}"
		if got != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestTheSentencesStayThatSayMost(t *testing.T) {
	t.Parallel()
	var m Memory
	m.Pass(100)
	m.Note([]byte("max_retries = 17"), Source{Seq: 1, Weight: 3})
	for seq := range int64(200) {
		m.Decide(2*seq+1, fmt.Sprintf("Let me look at the file number %d of them now.", seq))
		m.Decide(2*seq+2, fmt.Sprintf("The cause is max_retries, because it is %d.", 100+seq))
	}
	m.Decide(401, "The writer says that it is max_retries already.")
	got := m.Decided(200, func(seq int64) bool { return seq != 400 }, "- [401] The writer says that it is max_retries already.")
	for text, want := range map[string]bool{
		"[m398] The cause is max_retries, because it is 298.": true, "it is 299.": false, "it is 102.": false, "Let me": false, "The writer": false,
	} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q: got %t in %s", text, !want, got)
		}
	}
	if n := tokens.Estimate([]byte(got)); n > 220 || n < 150 {
		t.Errorf("%d tokens where 200 are allowed", n)
	}
	later := m.Decided(10_000, everything, "")
	if want := got + "\n[m400] The cause is max_retries, because it is 299.\n[m401] The writer says that it is max_retries already."; later != want {
		t.Errorf("what was not chosen is there, or what stood elsewhere is not: %s", later)
	}
	var two Memory
	two.Decide(7, "It is the cache.")
	two.Decide(7, "It stays.")
	two.Decide(8, "It is tested.")
	if got := two.Decided(100, everything, ""); got != "[m7] It is the cache. It stays.\n[m8] It is tested." {
		t.Errorf("sentences of one message are one line, not %q", got)
	}
}

func TestEncodeKeepsQuotesAndSentences(t *testing.T) {
	t.Parallel()
	var m Memory
	m.Pass(100)
	m.Quote(Quote{Seq: 7, Ref: "r7.0-aa", About: "Read a.go", Kind: Outcome, Text: "3 passed"})
	m.Decide(8, "I will keep it because it works.")
	read, err := Decode(string(m.Encode()))
	if err != nil || len(read.quotes) != 1 || read.quotes[0] != m.quotes[0] || len(read.decided) != 1 || read.decided[0] != m.decided[0] {
		t.Errorf("got %+v, %v", read, err)
	}
}

// TestATextIsReadOnceUntilNamesWeighOtherwise: a compaction writes its summary again with fewer messages, and the texts of
// the others need no second look.
func TestATextIsReadOnceUntilNamesWeighOtherwise(t *testing.T) {
	t.Parallel()
	const text = "max_retries = 17\nnothing\nmax_retries = 18\n"
	var m Memory
	m.Pass(100)
	m.Note([]byte(text), Source{Seq: 1, Weight: 3})
	m.Decide(1, "The cause is max_retries, because it is 17.")
	clone := m.Clone()
	if of, again := m.linesOf(text), clone.linesOf(text); len(of) != 2 || &of[0] != &again[0] {
		t.Errorf("%d lines, which a clone reads again", len(of))
	}
	choice := clone.Choose()
	choice.showText("max_retries")
	if l := clone.linesOf(text)[0]; l.worthIn(choice.number) != 0 || l.worthIn(m.Choose().number) == 0 {
		t.Error("a name counts by another choice than this one")
	}
	before, said := m.linesOf(text)[0].worthIn(0), m.decisionOf(0)
	m.Pass(500_000)
	m.Note([]byte("other_name"), Source{Seq: 2, Weight: 3})
	if after := m.linesOf(text)[0]; after.worthIn(0) >= before || m.decisionOf(0).worth >= said.worth {
		t.Errorf("a line is worth %v after %v", after.worthIn(0), before)
	}
}

func TestATextHasTheNamesOfEachOfItsLines(t *testing.T) {
	t.Parallel()
	var m Memory
	long := strings.Repeat("word ", 39) + "max_retries_of_a_client and parse_header"
	text := "a parse_header\r\n\n" + long + "\nport:\n8080 retries=17 \nplain words\n" + long + "\nlast_one: 12"
	m.Note([]byte("parse_header max_retries port: 8080 retries=17 last_one: 12 max_r"), Source{Seq: 1, Weight: 3})
	var want []string
	for t := range strings.Lines(text) {
		if list := m.NamesIn(nil, []byte(clipped(t)), false); len(list) > 0 {
			want = append(want, fmt.Sprint(clipped(t), len(list), list[0].name))
		}
	}
	var got []string
	for _, l := range m.linesOf(text) {
		got = append(got, fmt.Sprint(l.text, len(l.names), l.names[0].name))
	}
	if !slices.Equal(got, want) || len(want) != 5 {
		t.Errorf("got %q, want %q", got, want)
	}
}
