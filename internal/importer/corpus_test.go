package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// corpus returns the folder of recorded conversations, "" if it is not there.
func corpus(t *testing.T) string {
	dir := os.Getenv("VARVE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil && os.Getenv("VARVE_DATA") == "" {
		t.Logf("no recorded conversations: %v", err)
		return ""
	}
	return dir
}

// counts is what the corpus' index counts of a file. It counts an assistant message for each API id, a user message for
// each line, and as answered what was called in the file.
type counts struct {
	Messages int `json:"messages"`
	Calls    int `json:"tool_calls"`
	Results  int `json:"tool_results"`
	Orphans  int `json:"orphan_results"`
	Open     int `json:"unanswered_calls"`
}

func (c counts) minus(o counts) counts {
	return counts{
		c.Messages - o.Messages, c.Calls - o.Calls, c.Results - o.Results, c.Orphans - o.Orphans, c.Open - o.Open,
	}
}

// indexed is a file of the index. Files that are no real conversations have no counts.
type indexed struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Tokens *int   `json:"approx_tokens"`
	counts
}

// index returns the index of a folder; one without index.json has an empty one, and each of its files is read.
func index(t *testing.T, dir string) []indexed {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return filesOf(t, dir)
	}
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

func filesOf(t *testing.T, dir string) (files []indexed) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); ext == ".json" || ext == ".jsonl" {
			files = append(files, indexed{File: path})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestCorpus reads every recorded conversation, holds the counts to the index, and renders each into every format. A
// file that the index knows no message of may be refused, with the reason in the table.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	if dir == "" {
		return
	}
	files := index(t, dir)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(
		table,
		"file\tsource\tsessions\trecords\tmessages\tparts\tcalls\tresults\torphans\topen\ttokens\trejected\tskipped",
	)
	var sum measured
	for _, want := range files {
		data, err := os.ReadFile(filepath.Join(dir, want.File))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(context.Background(), SessionID(want.File), data, Auto)
		if err != nil {
			fmt.Fprintf(table, "%s\trefused: %v\n", want.File, err)
			if want.Messages > 0 {
				t.Errorf("%s: %v", want.File, err)
			}
			continue
		}
		got := measure(t, f)
		sum.add(got)
		fmt.Fprintf(
			table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%v\n", want.File, f.Source, len(f.Conversations),
			f.Report.Lines, got.Messages, got.parts, got.Calls, got.Results, got.Orphans, got.Open, got.tokens,
			len(f.Report.Rejected), f.Report.Skipped,
		)
		checkLaws(t, f)
		checkCounts(recorded{t, want, data, f, got})
		checkTexts(t, want.File, data, f)
		checkViews(t, want.File, f)
	}
	_ = table.Flush()
	t.Logf(
		"corpus: %d files, %d messages, %d parts, %d calls, %d results\n%s", len(files), sum.Messages, sum.parts,
		sum.Calls, sum.Results, text.String(),
	)
}

// measured is what the messages of a file hold.
type measured struct {
	counts
	parts, tokens   int
	answers, beside int // messages with results, and what stands in them besides results
}

func (m *measured) add(o measured) {
	m.Messages += o.Messages
	m.Calls += o.Calls
	m.Results += o.Results
	m.parts += o.parts
}

// measure counts a file's messages and pairs calls and results: a result answers the nearest open call of its id
// before.
func measure(t *testing.T, f *File) measured {
	t.Helper()
	var got measured
	for _, c := range f.Conversations {
		open := map[string]int{}
		for _, m := range c.Messages {
			in, err := wire.Inspect(c.Format, m.Body)
			if err != nil {
				t.Errorf("line %d: %v", m.Line, err)
			}
			before := got.Results
			for _, p := range in.Parts {
				got.part(p, open)
			}
			if got.Results > before {
				got.answers++
				got.beside += len(in.Parts) - (got.Results - before)
			}
			got.tokens += in.Tokens
			got.parts += len(in.Parts)
			got.Messages++
		}
		for _, n := range open {
			got.Open += n
		}
	}
	return got
}

func (m *measured) part(p wire.Part, open map[string]int) {
	switch p.Kind {
	case wire.Call:
		m.Calls++
		open[p.CallID]++
	case wire.Result:
		m.Results++
		if open[p.CallID] == 0 {
			m.Orphans++
		} else {
			open[p.CallID]--
		}
	}
}

// checkCounts holds the counts to the index, but for what the rules explain.
func checkCounts(r recorded) {
	r.t.Helper()
	if r.want.Tokens == nil {
		return
	}
	known, why := r.want.counts, []string{}
	for _, rule := range rules {
		if slices.Contains(strings.Fields(rule.formats), r.want.Format) {
			if less := rule.less(r); less != (counts{}) {
				known, why = known.minus(less), append(why, rule.why)
			}
		}
	}
	if r.got.counts != known {
		r.t.Errorf(
			"%s: counts are %+v, the index' %+v; expected is %+v (%s)", r.want.File, r.got.counts, r.want.counts,
			known, strings.Join(why, "; "),
		)
	}
}

// joining are the sources whose files have texts in pieces.
var joining = map[Source]bool{AISDKStream: true, Kimi: true, LangChain: true, Pi: true}

// checkTexts finds every text of the messages in the file as it is written there.
func checkTexts(t *testing.T, name string, data []byte, f *File) {
	t.Helper()
	if joining[f.Source] {
		return
	}
	for _, c := range f.Conversations {
		for _, m := range c.Messages {
			in, err := wire.Inspect(c.Format, m.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range in.Parts {
				if p.Kind == wire.Text && !bytes.Contains(data, p.Value.Of(m.Body)) {
					t.Errorf("%s: line %d: %.200s is not in the file", name, m.Line, p.Value.Of(m.Body))
				}
			}
		}
	}
}

// checkViews renders a file's conversations into every format. Nothing there breaks a rule, and the own format has the
// bytes that were imported wherever nothing was repaired.
func checkViews(t *testing.T, name string, f *File) {
	t.Helper()
	for _, c := range f.Conversations {
		stored := make([]wire.Stored, len(c.Messages))
		for i, m := range c.Messages {
			stored[i] = wire.Stored{Format: c.Format, Body: m.Body, Seq: int64(i + 1)}
		}
		for _, target := range session.Formats() {
			view := wiretest.Render(target, stored, wire.Options{})
			if found := wiretest.Validate(target, view.Bodies, wire.Options{}); len(found) > 0 {
				t.Errorf(
					"%s: %s as %s: %d violations, the first: message %d: %s: %s", name, c.ID, target, len(found),
					found[0].Message, found[0].Rule, found[0].Detail,
				)
			}
			if target == c.Format && len(view.Repairs) == 0 {
				checkSame(t, name, c.Messages, view.Bodies)
			}
		}
	}
}

func checkSame(t *testing.T, name string, want []Message, got [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d messages became %d in their own format", name, len(want), len(got))
		return
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i].Body) {
			t.Errorf("%s: line %d: %.200s became %.200s in its own format", name, want[i].Line, want[i].Body, got[i])
		}
	}
}

// TestCorpusBytes finds the content of every imported line of Claude Code unchanged in the messages, and nothing else
// in them. It reads the lines in its own way.
func TestCorpusBytes(t *testing.T) {
	t.Parallel()
	dir := corpus(t)
	if dir == "" {
		return
	}
	for _, want := range index(t, dir) {
		if want.Format != "claude_code_jsonl" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, want.File))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(context.Background(), SessionID(want.File), data, Auto)
		if err != nil {
			t.Fatal(err)
		}
		checkBytes(t, want.File, data, f)
	}
}

// claudeRecord is a record of Claude Code, as far as checkBytes reads it.
type claudeRecord struct {
	Type    string `json:"type"`
	Failed  bool   `json:"isApiErrorMessage"`
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

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
	others := f.Report.Skipped[string(anotherBranch)] // whose records are in no message
	for n, line := range bytes.Split(data, []byte("\n")) {
		decoder := json.NewDecoder(bytes.NewReader(line))
		for {
			var read struct {
				claudeRecord
				Data struct {
					Type    string       `json:"type"`
					Message claudeRecord `json:"message"`
				} `json:"data"`
			}
			if decoder.Decode(&read) != nil {
				break
			}
			r := read.claudeRecord
			if r.Type == "progress" && read.Data.Type == "agent_progress" {
				r = read.Data.Message
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
			if others > 0 && !bytes.Contains(all.Bytes(), pieces[0]) {
				others--
				continue
			}
			for _, piece := range pieces {
				total -= len(piece)
				if !bytes.Contains(all.Bytes(), piece) {
					t.Errorf("%s: line %d: %.80s… is in no message", name, n+1, piece)
				}
			}
		}
	}
	for _, prompt := range queuedAlone(data) {
		total -= len(prompt)
	}
	if total != 0 || others != 0 {
		t.Errorf("%s: the messages have %d bytes of content more than the lines", name, total)
	}
}
