package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/wire"
)

// corpus is the folder of recorded conversations, "" if it is not there.
func corpus(t *testing.T) string {
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "index.json")); err != nil {
		t.Logf("no recorded conversations: %v", err)
		return ""
	}
	return dir
}

// indexed is what the corpus' index says of a file. It counts an assistant message for each API id, a user message for
// each line, and as answered what was called in the file.
type indexed struct {
	File     string `json:"file"`
	Format   string `json:"format"`
	Messages int    `json:"messages"`
	Calls    int    `json:"tool_calls"`
	Results  int    `json:"tool_results"`
	Orphans  int    `json:"orphan_results"`
	Open     int    `json:"unanswered_calls"`
}

func index(t *testing.T, dir string) []indexed {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Entries []indexed `json:"entries"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all.Entries
}

func TestCorpusClaudeCode(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	if dir == "" {
		return
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "file\trecords\tmessages\tindex\tcalls\tresults\ttokens\tskipped\tbad\tnotes\tviolations")
	for _, want := range index(t, dir) {
		if want.Format != "claude_code_jsonl" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, want.File))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(SessionID(want.File), data, Auto)
		if err != nil {
			t.Errorf("%s: %v", want.File, err)
			continue
		}
		got := measure(t, f)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%d\t%d\t%v\n", filepath.Base(want.File), f.Report.Lines, got.messages, want.Messages,
			got.calls, got.results, got.tokens, f.Report.Skipped, len(f.Report.Rejected), len(f.Report.Notes), got.violations)
		compare(t, want, f, got)
		checkLaws(t, f)
		checkBytes(t, want.File, data, f)
	}
	_ = table.Flush()
	t.Logf("\n%s", text.String())
}

type measured struct {
	messages, answers, beside, calls, results, tokens int
	violations                                        map[string]int
}

func measure(t *testing.T, f *File) measured {
	t.Helper()
	got := measured{violations: map[string]int{}}
	for _, c := range f.Conversations {
		var list []wire.Message
		for _, m := range c.Messages {
			in, err := wire.Inspect(c.Format, m.Body)
			if err != nil {
				t.Errorf("line %d: %v", m.Line, err)
			}
			before := got.results
			for _, p := range in.Parts {
				switch p.Kind {
				case wire.Call:
					got.calls++
				case wire.Result:
					got.results++
				}
			}
			if got.results > before {
				got.answers++
				got.beside += len(in.Parts) - (got.results - before)
			}
			got.tokens += in.Tokens
			list = append(list, in)
		}
		got.messages += len(list)
		for _, v := range wire.ValidateMessages(c.Format, list) {
			got.violations[v.Rule]++
		}
	}
	return got
}

// compare holds the counts to the index. Its messages are more than ours by those that no model wrote, and because it
// counts each line of results on its own, and what a person typed beside a result.
func compare(t *testing.T, want indexed, f *File, got measured) {
	t.Helper()
	if got.calls != want.Calls || got.results != want.Results {
		t.Errorf("%s: %d calls and %d results, the index has %d and %d", want.File, got.calls, got.results, want.Calls, want.Results)
	}
	if more := f.Report.Skipped["assistant (synthetic)"] + got.results - got.answers + got.beside; got.messages+more != want.Messages {
		t.Errorf("%s: %d messages and %d that only the index counts, the index has %d", want.File, got.messages, more, want.Messages)
	}
	if got.violations["V-A2"] != want.Orphans {
		t.Errorf("%s: %d results without a call, the index has %d", want.File, got.violations["V-A2"], want.Orphans)
	}
	if open := got.violations["V-A1"]; open > want.Open {
		t.Errorf("%s: %d calls without a result, the index has %d", want.File, open, want.Open)
	}
	for rule, n := range got.violations {
		if rule != "V-A1" && rule != "V-A2" && rule != "V-A5" {
			t.Errorf("%s: %d violations of %s", want.File, n, rule)
		}
	}
}

// checkBytes finds the content of every imported line unchanged in the messages, and nothing else in them. It reads the
// lines in its own way.
func checkBytes(t *testing.T, name string, data []byte, f *File) {
	t.Helper()
	var all bytes.Buffer
	total := 0
	for _, c := range f.Conversations {
		for _, m := range c.Messages {
			all.Write(m.Body)
			total += len(m.Body) - len(`{"role":"","content":}`) - len(parseObject(m.Body).text("role"))
			if content := parseObject(m.Body)["content"]; content[0] == '[' {
				total -= len("[]") + max(0, len(parseArray(content))-1)
			}
		}
	}
	for n, line := range bytes.Split(data, []byte("\n")) {
		decoder := json.NewDecoder(bytes.NewReader(line))
		for {
			var r struct {
				Type    string `json:"type"`
				Failed  bool   `json:"isApiErrorMessage"`
				Message struct {
					Model   string          `json:"model"`
					Content json.RawMessage `json:"content"`
				} `json:"message"`
			}
			if decoder.Decode(&r) != nil {
				break
			}
			if r.Type != "user" && r.Type != "assistant" || r.Failed || r.Message.Model == "<synthetic>" {
				continue
			}
			pieces := []json.RawMessage{r.Message.Content}
			if r.Message.Content[0] == '[' {
				if err := json.Unmarshal(r.Message.Content, &pieces); err != nil {
					t.Fatal(err)
				}
			}
			for _, piece := range pieces {
				total -= len(piece)
				if !bytes.Contains(all.Bytes(), piece) {
					t.Errorf("%s: line %d: %.80s… is in no message", name, n+1, piece)
				}
			}
		}
	}
	if total != 0 {
		t.Errorf("%s: the messages have %d bytes of content more than the lines", name, total)
	}
}

// TestCorpusDocuments reads every other file: those of our formats completely, the others with an error that names them.
func TestCorpusDocuments(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	if dir == "" {
		return
	}
	// What the index calls "other" is mostly of no known format; only Hermes' sessions are OpenAI Chat messages.
	ours := map[string]bool{"minisweagent": true, "openai_chat": true, "openai_chat_exchange": true, "anthropic_exchange": true}
	for _, want := range index(t, dir) {
		if want.Format == "claude_code_jsonl" || want.File == "format-zoo/hermes-large.json" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, want.File))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(SessionID(want.File), data, Auto)
		if (err == nil) != ours[want.Format] {
			t.Errorf("%s (%s): %v", want.File, want.Format, err)
		}
		if err != nil {
			t.Logf("%s: %.90s", want.File, err)
			continue
		}
		got := measure(t, f)
		checkLaws(t, f)
		t.Logf("%s: %s, %d messages (index %d), %d calls (%d), %d results (%d), %d bad, violations %v", want.File, f.Source, got.messages, want.Messages,
			got.calls, want.Calls, got.results, want.Results, len(f.Report.Rejected), got.violations)
	}
}
