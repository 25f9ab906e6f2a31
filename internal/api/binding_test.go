package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// strict answers as a model does that binds its thinking: each signature is the hash of all that stood before it, and
// one behind something else is refused.
type strict struct {
	t        *testing.T
	calls    int
	thoughts int // that the last view had
}

// prefix is what stands in a request before a block, block by block.
type prefix struct{ bytes.Buffer }

func (c *prefix) add(role string, block []byte) {
	fmt.Fprintf(c, "%s %s\n", role, block)
}

func (c *prefix) signature() string {
	sum := sha256.Sum256(c.Bytes())
	return fmt.Sprintf("%x", sum[:8])
}

// thought returns thinking that is bound to the conversation, and adds it.
func (c *prefix) thought() string {
	block := `{"type":"thinking","thinking":"hm","signature":"` + c.signature() + `"}`
	c.add("assistant", []byte(block))
	return block
}

// read checks a view and returns what stands in it.
func (s *strict) read(v view) *prefix {
	s.t.Helper()
	c := &prefix{}
	_, _ = c.Write(v.System)
	s.thoughts = 0
	for i, body := range v.Messages {
		var m struct {
			Role    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(body, &m)
		var blocks []json.RawMessage
		if json.Unmarshal(m.Content, &blocks) != nil {
			blocks = []json.RawMessage{m.Content}
		}
		for _, block := range blocks {
			var of struct{ Type, Signature string }
			_ = json.Unmarshal(block, &of)
			if of.Type == "thinking" {
				s.thoughts++
				if of.Signature != c.signature() {
					s.t.Errorf("messages.%d: the block is bound to a different conversation", i)
				}
			}
			c.add(m.Role, block)
		}
	}
	for _, broken := range wiretest.Validate(session.Anthropic, v.bodies(), wire.Options{Model: bindingModel}) {
		s.t.Errorf("the view breaks %+v", broken)
	}
	return c
}

const bindingModel = "claude-fable-5-1"

// acts answers a view with thinking between two calls, and returns the answer and the results.
func (s *strict) acts(v view) []string {
	s.t.Helper()
	c := s.read(v)
	first := c.thought()
	uses, results := make([]string, 2), make([]string, 2)
	for i := range uses {
		s.calls++
		uses[i] = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"path":"f%d"}}`, s.calls, s.calls)
		results[i] = fmt.Sprintf(`{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}`, s.calls, literalOf(prose(s.calls, 500)))
	}
	c.add("assistant", []byte(uses[0]))
	return []string{
		`{"role":"assistant","content":[` + first + `,` + uses[0] + `,` + c.thought() + `,` + uses[1] + `]}`,
		`{"role":"user","content":[` + strings.Join(results, ",") + `]}`,
	}
}

// says answers a view with thinking and a text.
func (s *strict) says(v view) string {
	s.t.Helper()
	return `{"role":"assistant","content":[` + s.read(v).thought() + `,{"type":"text","text":"Done."}]}`
}

// bound is a session of a model that binds its thinking, and its agent.
type bound struct {
	*world
	model *strict
	path  string
}

func newBound(t *testing.T) bound {
	b := bound{newWorld(t), &strict{t: t}, "/v1/sessions/s"}
	b.must(http.StatusCreated, "PUT", b.path, `{"model":"`+bindingModel+`","window_tokens":1000000,"policy":{"auto":false,"target":0.3}}`)
	b.append(`{"role":"system","content":"be brief"}`, user("read these files"))
	return b
}

func (b *bound) append(messages ...string) {
	b.Helper()
	b.must(http.StatusCreated, "POST", b.path+"/messages", batch("anthropic", messages...))
}

func (b *bound) view(query string) view {
	b.Helper()
	return decoded[view](b.must(http.StatusOK, "GET", b.path+"/context?"+query, ""))
}

// work has the agent read a view and answer it with calls, n times.
func (b *bound) steps(n int) {
	b.Helper()
	for range n {
		b.append(b.model.acts(b.view(""))...)
	}
}

// keeps requires that the last view had a number of thoughts.
func (b *bound) keeps(what string, thoughts int) {
	b.Helper()
	if b.model.read(b.view("")); b.model.thoughts != thoughts {
		b.Errorf("%s: the view has %d thoughts, want %d", what, b.model.thoughts, thoughts)
	}
}

// compacts compacts the session as if its window were small.
func (b *bound) compacts() {
	b.Helper()
	before := b.view("").Checkpoint
	b.must(http.StatusOK, "PATCH", b.path, `{"window_tokens":8000}`)
	b.must(http.StatusOK, "POST", b.path+"/compact?wait=20", "")
	b.must(http.StatusOK, "PATCH", b.path, `{"window_tokens":1000000}`)
	if b.view("").Checkpoint != before+1 {
		b.Fatal("nothing was compacted")
	}
}

// TestAModelThatBindsItsThinkingNeverRefusesAView runs an agent of one whose view changes in every way there is.
func TestAModelThatBindsItsThinkingNeverRefusesAView(t *testing.T) {
	t.Parallel()
	b := newBound(t)
	b.work()
	b.steps(6)
	b.keeps("nothing has changed", 12)

	inFlight := b.model.acts(b.view("")) // begun before the compaction, appended behind it
	b.compacts()
	b.append(inFlight...)
	b.keeps("a compaction", 0)
	b.steps(3)
	b.keeps("turns behind a checkpoint", 6)
	b.append(b.model.says(b.view("")), user("and now?"))
	b.keeps("a turn that ended", 7)
	b.compacts()
	b.steps(2)
	b.keeps("a second compaction", 2) // what was asked before the compaction is answered as if it did not know of it

	small := b.view("max_tokens=2000")
	if small.Omitted == nil {
		b.Fatal("nothing is left out of the bounded view")
	}
	b.append(b.model.acts(small)...)
	b.keeps("a bounded view", 0)
	b.steps(2)
	b.keeps("turns behind a bounded view", 4)

	waiting := b.model.acts(b.view(""))
	b.append(waiting[0], user("go on without it"))
	b.append(b.model.says(b.view("")))
	b.append(waiting[1])
	b.keeps("late results", 6)
	b.append(user("now?"))
	b.steps(2)
	b.keeps("turns behind late results", 10)

	page := b.log(b.path)
	at := session.Address{Tenant: b.tenant, ID: "s"}
	for _, m := range page { // the user's "go on without it", before six thoughts
		if strings.Contains(string(m.Message), "go on without it") {
			if _, _, err := b.store.Remove(t.Context(), at, m.Seq, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.append(user("one message is gone"))
	b.model.read(b.view(""))
	b.steps(2)
	b.model.read(b.view(""))
	if b.model.thoughts < 4 {
		t.Errorf("turns behind a removal: the view has %d thoughts", b.model.thoughts)
	}

	b.must(http.StatusCreated, "POST", b.path+"/messages", `{"format":"anthropic","messages":[`+user("a question")+`],"client_ids":["q"]}`)
	b.steps(1)
	b.must(http.StatusOK, "PATCH", b.path+"/messages/q", `{"message":`+user("another question")+`}`)
	b.steps(2)
	b.model.read(b.view(""))
	b.compacts()
	b.steps(2)
	b.model.read(b.view(""))
}

// TestACompactionWaitsForTheEndOfABoundTurn reads the runs until one says so. One that is asked for does not wait.
func TestACompactionWaitsForTheEndOfABoundTurn(t *testing.T) {
	t.Parallel()
	b := newBound(t)
	b.work()
	b.steps(3)
	tokens := b.view("").Tokens
	b.must(http.StatusOK, "PATCH", b.path, fmt.Sprintf(`{"window_tokens":%d,"policy":{"auto":true,"trigger":0.5,"hard":1,"target":0.3}}`, 2*tokens))
	b.steps(1)
	waits := func() bool {
		runs := b.must(http.StatusOK, "GET", b.path+"/runs", "").Body.String()
		return strings.Contains(runs, bindingModel+" binds its thinking") && strings.Contains(runs, `"queued"`)
	}
	b.until("a run waits", waits)
	b.keeps("while it waits", 8)
	run := decoded[session.Run](b.must(http.StatusOK, "POST", b.path+"/compact?wait=20", ""))
	if !run.State.Ended() || strings.Contains(run.Reason, "waits") {
		t.Errorf("the run that was asked for is %s: %s", run.State, run.Reason)
	}
}

func TestImportedThinkingIsBoundToAnotherRequest(t *testing.T) {
	t.Parallel()
	b := newBound(t)
	said := `{"role":"assistant","content":[` + b.model.read(view{}).thought() + `,{"type":"text","text":"Done."}]}`
	b.must(http.StatusCreated, "POST", "/v1/imports?session=i&settings="+url.QueryEscape(`{"model":"`+bindingModel+`"}`),
		`[`+user("hi")+`,`+said+`,`+user("and now?")+`]`)
	b.path = "/v1/sessions/i"
	b.keeps("imported", 0)
	for range 2 { // an answer right behind a change may be of the view before
		b.append(b.model.says(b.view("")), user("go on"))
	}
	b.keeps("imported, and gone on with", 1)
}

// TestWhatNobodyBindsStaysWithItsThinking: the same history of a model that binds nothing keeps every thought.
func TestWhatNobodyBindsStaysWithItsThinking(t *testing.T) {
	t.Parallel()
	b := newBound(t)
	b.must(http.StatusOK, "PATCH", b.path, `{"model":"claude-opus-4-8"}`)
	b.work()
	b.steps(3)
	b.append(b.model.acts(b.view("max_tokens=1000000"))...)
	if b.model.read(b.view("")); b.model.thoughts != 8 {
		t.Errorf("the view has %d thoughts", b.model.thoughts)
	}
}
