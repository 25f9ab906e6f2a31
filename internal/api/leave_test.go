package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

var wholeCorpus = flag.Bool("whole-corpus", false, "read back every result of every recording, which takes minutes")

// onlyWay is a policy under which nothing leaves a view, on request only; a way adds one stage to it.
const onlyWay = `"auto":false,"target":0.01,"idle":{"enabled":false},"protect":{"last_units":0,"newest_user":false,"yields":false},"cap":{"enabled":false},"dedupe":{"enabled":false},` +
	`"trim":{"enabled":false},"budget":{"enabled":false},"summarise":{"enabled":false},"truncate":{"enabled":false}`

// ways are policies each of which makes results leave in its way, and the actions of which one is expected.
var ways = []struct{ name, policy, action string }{
	{"cap", `"cap":{"enabled":true,"max_tokens":0,"max_chars":400,"max_ratio":0,"unit_ratio":0,"head_chars":100,"tail_chars":100}`, "cap"},
	{"white space", `"whitespace":{"enabled":true,"min_tokens":1}`, "squeeze"},
	{"dedupe", `"dedupe":{"enabled":true,"min_tokens":1}`, "stub"},
	{"bookend", `"trim":{"enabled":true,"min_tokens":1,"hot_zone_min_tokens":0,"hot_zone_ratio":0,"degradation_span_ratio":1,"bookend_max_chars":400,"bookend_min_chars":100}`, "bookend"},
	{"placeholder", `"trim":{"enabled":true,"min_tokens":1,"hot_zone_min_tokens":0,"hot_zone_ratio":0,"degradation_span_ratio":0}`, "placeholder"},
	{"clear", `"budget":{"enabled":true,"tokens":1}`, "clear"},
	{"arguments", `"arguments":{"enabled":true,"min_bytes":20,"after_tokens":0,"operations":["file_write","view_file","file_read","command_execution","search","list_dir","test_execution","other"]}`, "omit"},
	{"summary", `"summarise":{"enabled":true,"min_tokens":1,"keep_turns":0,"keep_messages":1}`, "summarise"},
	{"truncation", `"truncate":{"enabled":true}`, "drop"},
}

// windowOf returns a window that the sessions are far too large for. A summary needs room.
func windowOf(action string) string {
	if action == "summarise" {
		return "40000"
	}
	return "2000"
}

// TestEveryResultComesBackAsItWas makes the results of recorded conversations leave in every way, and reads them back
// in every way.
func TestEveryResultComesBackAsItWas(t *testing.T) {
	t.Parallel()
	if corpus() == "" {
		t.Skip("there are no recorded conversations on this machine")
	}
	recorded, _, err := folder.Read(context.Background(), corpus())
	if err != nil {
		t.Fatal(err)
	}
	left := &departures{by: map[string]int{}}
	w := newWorld(t)
	w.work()
	t.Run("sessions", func(t *testing.T) {
		for i, s := range recorded {
			if *wholeCorpus || slices.Contains(sampled, s.Name) {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					of := *w
					of.TB = t
					newLeaver(&of, fmt.Sprintf("s%d", i), s, left).all(t)
				})
			}
		}
	})
	t.Logf("%d sessions, %d results; parts that left: %v; %d read back by each way; %d without a ref", left.sessions, left.results, left.by, left.readBack, left.lost)
	for _, way := range ways {
		if left.by[way.action] == 0 && (*wholeCorpus || way.action != "stub") { // few have a superseded result that is long
			t.Errorf("no result has left by %s", way.action)
		}
	}
	if left.lost > 0 || left.readBack == 0 {
		t.Errorf("%d parts left without a ref, %d were read back", left.lost, left.readBack)
	}
}

// sampled are recordings of every format in which results leave in every way; few have large arguments.
var sampled = []string{
	"ai-sdk/langchain-react-agent-tool-calling", "claude-code/entire-8e-0a64736bc7-0", "claude-code/raze-claude-session",
	"format-zoo/codex-small", "gemini-cli/entire-fc3b788017", "openhands/resolver-1", "tau2-bench/retail-toolorchestra-021",
}

// few is about how many results are read back of those that left one of them in one way.
const few = 3

// departures counts what left.
type departures struct {
	mu                                sync.Mutex
	by                                map[string]int
	sessions, results, readBack, lost int
}

// original is a result as it came in.
type original struct {
	seq     int64
	ref     string
	call    bool   // the arguments of a call
	literal []byte // its JSON in the message
	stored  []byte
}

// leaver makes the results of one session leave.
type leaver struct {
	*world
	id        string
	of        *replay.Session
	originals map[int64][]original // by seq
	left      *departures
	agent     agent // which holds a token of the session
}

func newLeaver(w *world, id string, s *replay.Session, left *departures) *leaver {
	w.Helper()
	l := &leaver{world: w, id: id, of: s, originals: map[int64][]original{}, left: left}
	for _, m := range s.Messages {
		facts, err := wire.Inspect(s.Format, m.Body)
		if err != nil {
			w.Fatal(err)
		}
		for _, p := range facts.Parts {
			content := wire.ResultText(s.Format, m.Body, p)
			if p.Kind != wire.Result && p.Kind != wire.Call || content.Stored == nil {
				continue
			}
			sum := sha256.Sum256(content.Stored)
			ref := session.NewResultRef(m.Seq, p.Index, sum).String()
			l.originals[m.Seq] = append(l.originals[m.Seq], original{m.Seq, ref, p.Kind == wire.Call, p.Value.Of(m.Body), content.Stored})
		}
	}
	return l
}

// all lets the results leave in every way, one after the other.
func (l *leaver) all(t *testing.T) {
	l.Helper()
	l.must(http.StatusCreated, "PUT", "/v1/sessions/"+l.id, `{"window_tokens":2000,"policy":{`+onlyWay+`}}`)
	for rest := l.of.Messages; len(rest) > 0; {
		n, bodies := min(len(rest), 100), []string{}
		for i := range n {
			bodies = append(bodies, string(rest[i].Body))
		}
		l.must(http.StatusCreated, "POST", "/v1/sessions/"+l.id+"/messages", batch(string(l.of.Format), bodies...))
		rest = rest[n:]
	}
	l.agent = l.world.agent(t, l.serve(t), versions[0], bearer{token: l.newToken(l.id, "").Text})
	for _, way := range ways {
		l.must(http.StatusOK, "PUT", "/v1/sessions/"+l.id+"/policy", `{`+onlyWay+`}`)
		l.must(http.StatusOK, "PATCH", "/v1/sessions/"+l.id, `{"window_tokens":`+windowOf(way.action)+`,"policy":{`+way.policy+`}}`)
		run := decoded[session.Run](l.must(http.StatusOK, "POST", "/v1/sessions/"+l.id+"/compact?wait=60", ""))
		if run.State != session.RunDone {
			continue // the session has nothing of this kind
		}
		gone := l.gone(way.name, *run.Checkpoint)
		for i, r := range gone {
			if *wholeCorpus || i%(1+len(gone)/few) == 0 {
				l.readBack(way.name, r)
			}
		}
	}
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	l.left.sessions++
	for _, list := range l.originals {
		l.left.results += len(list)
	}
}

// gone returns the results that are not whole in the view of a checkpoint. The log says what must be there, the view
// what is, and the manifest must have the rest with a ref.
func (l *leaver) gone(way string, n int) (gone []original) {
	l.Helper()
	checkpoint := fmt.Sprintf("/v1/sessions/%s/checkpoints/%d", l.id, n)
	served := l.fetch(http.StatusOK, "/v1/sessions/"+l.id+"/context")
	view, repaired := served.Body.Bytes(), map[int64]bool{}
	for _, r := range decoded[struct{ Repairs []struct{ Seq int64 } }](served).Repairs {
		for i := range int64(8) { // in a checkpoint, a repair names the first message of its unit
			repaired[r.Seq+i] = true // what the provider would refuse is not in the view as it is in the log
		}
	}
	manifest := decoded[protocol.CheckpointDetail](l.fetch(http.StatusOK, checkpoint+"?manifest=all")).Manifest
	covered := func(r original) bool {
		for _, e := range manifest.Entries {
			if e.Ref == r.ref || e.Part < 0 && e.Seq <= r.seq && r.seq <= e.LastSeq {
				return e.Ref != "" || e.Part < 0
			}
		}
		return false
	}
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	for _, e := range manifest.Entries {
		l.left.by[e.Do]++
	}
	for _, list := range l.originals {
		for _, r := range list {
			switch {
			case covered(r):
				gone = append(gone, r)
			case !bytes.Contains(view, r.literal) && !repaired[r.seq]:
				l.left.lost++
				l.Errorf("%s: result %s is not in the view, and the manifest does not have it: %.300s in %s", way, r.ref, r.literal, l.of.Messages[r.seq-1].Body)
			}
		}
	}
	return gone
}

// readBack reads a result in every way, and compares it with what came in.
func (l *leaver) readBack(way string, want original) {
	l.Helper()
	same := func(how string, got []byte) {
		l.Helper()
		if !bytes.Equal(got, want.stored) {
			l.Errorf("%s: %s by %s has %d bytes %.60q, it had %d: %.60q", way, want.ref, how, len(got), got, len(want.stored), want.stored)
		}
	}
	path := "/v1/sessions/" + l.id + "/results/" + want.ref
	raw := l.fetch(http.StatusOK, path+"?raw=true")
	same("raw", raw.Body.Bytes())
	sum := sha256.Sum256(want.stored)
	if got := raw.Header().Get("X-Content-Sha256"); got != hex.EncodeToString(sum[:]) {
		l.Errorf("%s: the sha256 of %s is %s", way, want.ref, got)
	}
	same("Range", l.byRanges(path, len(want.stored)))
	same("lines", l.byLines(path))
	same("MCP", l.byMCP(want.ref))
	seq := fmt.Sprint(want.seq)
	log := l.fetch(http.StatusOK, "/v1/sessions/"+l.id+"/messages?from_seq="+seq+"&to_seq="+seq).Body.Bytes()
	if body := l.of.Messages[want.seq-1].Body; !bytes.Contains(log, body) {
		l.Errorf("%s: message %d of the log is not what came in", way, want.seq)
	}
	l.left.mu.Lock()
	defer l.left.mu.Unlock()
	l.left.readBack++
}

// byRanges reads three pieces.
func (l *leaver) byRanges(path string, size int) (got []byte) {
	l.Helper()
	for from := 0; from < size; {
		to := min(size, from+size/3+1)
		piece := l.fetch(http.StatusPartialContent, path+"?raw=true", "Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
		got = append(got, piece.Body.Bytes()...)
		from = to
	}
	return got
}

// byMCP calls read_result until its answers say that there is no more.
func (l *leaver) byMCP(ref string) (got []byte) {
	l.Helper()
	for with := any(map[string]any{"ref": ref, "raw": true, "max_bytes": 102400}); with != nil; {
		_, answer := l.agent.must("read_result", with)
		got = append(got, answer["content"].(string)...)
		with = answer["next"]
	}
	return got
}

// byLines reads page after page.
func (l *leaver) byLines(path string) []byte {
	l.Helper()
	var text strings.Builder
	for offset, char := int64(1), int64(0); ; {
		page := decoded[protocol.ResultPage](l.fetch(http.StatusOK, fmt.Sprintf("%s?offset=%d&char_offset=%d&limit=500", path, offset, char)))
		for line := range strings.Lines(page.Content) {
			_, line, _ = strings.Cut(line, "\t")
			text.WriteString(line)
		}
		if page.NextOffset == nil {
			return []byte(text.String())
		}
		offset, char = *page.NextOffset, page.NextCharOffset
	}
}
