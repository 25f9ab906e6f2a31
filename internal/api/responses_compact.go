package api

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
)

// compactResponses is POST /v1/responses/compact: items in, a shorter list of items out. Items that come with the request
// are not stored, and nothing is done for an Idempotency-Key; a conversation that it names is compacted as such.
func (s *Server) compactResponses(x *exchange) error {
	d := responsesBody{}
	d.windows, d.format, d.force = s.Models, session.OpenAIResponses, true
	if err := d.readQuery(x.openAIQuery("tools", "window_tokens")); err != nil {
		return err
	}
	body, err := readBody(x)
	if err != nil {
		return err
	}
	defer body.free()
	d.data = body.b
	id, err := x.idempotency(body.b)
	if err != nil {
		return err
	}
	if d.layers, err = s.tenantLayers(x, session.Address{}); err != nil {
		return err
	}
	if err := d.read(); err != nil {
		return err
	}
	answer := compactionAnswer{Object: "response.compaction", CreatedAt: time.Now().Unix()}
	var bodies [][]byte
	if d.previous != "" {
		bodies, err = s.compactConversation(x, d.previous, id)
	} else {
		bodies, err = d.compact(x, &answer)
	}
	if err != nil {
		return err
	}
	if bodies = d.rendered(nil, bodies).Bodies; d.asText {
		bodies = withoutTools(bodies)
	}
	return x.compaction(answer, bodies)
}

// responsesBody is the body of POST /v1/responses/compact. Beside OpenAI's members it may have those of POST /v1/compact
// that say how to compact.
type responsesBody struct {
	statelessBody
	previous string // the id of a conversation
	asText   bool   // answer messages alone
}

// responsesFields are the members, of which those of ignored change nothing here: they say how a model is asked.
var (
	ignored         = []string{"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier", "image"}
	responsesFields = append([]string{"model", "input", "previous_response_id", "instructions", "policy", "window_tokens", "overhead_tokens", "force", "include_results"}, ignored...)
)

func (d *responsesBody) readQuery(q *query) error {
	d.asText = q.choice("tools", "text", "items") == "text"
	d.window = int(q.integer("window_tokens", minWindowTokens, maxWindowTokens, 0))
	return q.err()
}

// read checks the body and finds its members. null is as good as none.
func (d *responsesBody) read() error {
	limits := batchLimits
	limits.Nodes = 0
	if err := d.check(limits); err != nil {
		return err
	}
	d.large = rawjson.Check(d.data, batchLimits) != nil
	for name, value := range d.members("", rawjson.Value(d.data), responsesFields) {
		if d.data[value.Start] == 'n' {
			continue
		}
		if err := d.member(name, value); err != nil {
			return err
		}
	}
	switch {
	case d.messages == nil && d.previous == "" && len(d.problems) == 0:
		d.wrong("/input", invalidRequest, "input is missing: a string or an array of items, or previous_response_id with the id of a conversation")
	case d.messages != nil && d.previous != "":
		d.wrong("/previous_response_id", invalidRequest, "leave either input or previous_response_id out: a conversation has its items here")
	}
	if d.window == 0 {
		d.window = session.DefaultWindowTokens
	}
	if d.policy == nil && len(d.problems) == 0 {
		var err error
		if d.policy, err = d.tenantPolicy(d.layers); err != nil {
			return err
		}
	}
	return d.err()
}

func (d *responsesBody) member(name string, value rawjson.Span) error {
	switch name {
	case "model":
		d.model, _ = d.text("/model", value, session.MaxIDBytes)
		if known, ok := d.windows.Find(d.model); ok && d.window == 0 {
			d.window = known.Window()
		}
	case "input":
		d.readInput(value)
	case "previous_response_id":
		d.previous, _ = d.text("/previous_response_id", value, session.MaxIDBytes)
	case "instructions":
		if _, ok := d.text("/instructions", value, session.MaxMessageBytes); ok {
			d.overhead += tokens.EstimateLiteral(value.Of(d.data))
		}
	default:
		return d.set(name, value)
	}
	return nil
}

// readInput finds the items. One string is a message of the user.
func (d *responsesBody) readInput(value rawjson.Span) {
	if d.data[value.Start] != '"' {
		d.messages = d.batch(value)
		d.rename("/messages", "/input")
		return
	}
	start := len(d.data)
	d.data = append(append(append(d.data[:start:start], `{"role":"user","content":`...), value.Of(d.data)...), '}')
	d.messages = []rawjson.Span{{Start: start, End: len(d.data)}}
}

// rename moves the problems at one member to another.
func (d *document) rename(from, to string) {
	for i, p := range d.problems {
		if rest, ok := strings.CutPrefix(p.Pointer, from); ok && (rest == "" || rest[0] == '/') {
			d.problems[i].Pointer = to + rest
		}
	}
}

// compact compacts the items of the request.
func (d *responsesBody) compact(x *exchange, a *compactionAnswer) ([][]byte, error) {
	snap, _, err := d.snapshot()
	if err != nil {
		d.rename("/messages", "/input")
		return nil, d.err()
	}
	if snap, err = withTools(snap); err != nil {
		return nil, err
	}
	p, err := compactor.ProposeAlone(x.ctx, snap, *d.policy, d.force)
	if err != nil {
		return nil, err
	}
	what := compactedOf(p, d.includeResults)
	a.Compaction = &what
	return split(appendCompacted(nil, p)), nil
}

// conversationWait is how long a conversation's compaction may take before the caller has to ask again.
const conversationWait = 25 * time.Second

// compactConversation has a conversation compacted, as POST /v1/sessions/{id}/compact does, and reads its view.
func (s *Server) compactConversation(x *exchange, id string, key *session.Idempotency) ([][]byte, error) {
	at := session.Address{Tenant: x.tenant, ID: id}
	x.session = id
	run, replayed, err := s.Store.Compact(x.ctx, at, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, fail("not_found", "there is no conversation %q: Varve keeps conversations and no responses; send their items as input (compactionMode \"input\")", shorten(id))
	case err != nil:
		return nil, err
	}
	w := waiter{exchange: x, server: s, at: at, up: time.Now().Add(conversationWait)}
	if run, err = w.wait(run, replayed); err != nil {
		return nil, err
	}
	if !run.State.Ended() {
		return nil, fail(unavailable, "the compaction has not ended yet: ask again, run %s goes on", run.ID)
	}
	x.replayed(key, replayed)
	traced, err := s.Store.Traced(x.ctx, at)
	if err != nil {
		return nil, err
	}
	return viewBodies(at, &traced)
}

func viewBodies(at session.Address, t *postgres.Traced) (bodies [][]byte, err error) {
	items, err := viewItems(at, t)
	for i := range items {
		bodies = append(bodies, items[i].body)
	}
	return bodies, err
}

// compactionAnswer is a compaction as OpenAI's API answers it, its output aside, with what it did in a member of ours.
type compactionAnswer struct {
	ID         string        `json:"id"`
	Object     string        `json:"object"`
	CreatedAt  int64         `json:"created_at"` // Unix seconds
	Usage      responseUsage `json:"usage"`
	Compaction *compacted    `json:"compaction,omitempty"` // not there for a conversation, whose runs tell
}

// responseUsage counts what a model was asked. Compaction asks none but for summaries, whose writers bill their operator.
type responseUsage struct {
	InputTokens  int64              `json:"input_tokens"`
	InputDetails inputTokenDetails  `json:"input_tokens_details"`
	OutputTokens int64              `json:"output_tokens"`
	Details      outputTokenDetails `json:"output_tokens_details"`
	TotalTokens  int64              `json:"total_tokens"`
}

type inputTokenDetails struct {
	CachedTokens int64 `json:"cached_tokens"`
}

type outputTokenDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// compaction answers with items. Messages get ids, which clients copy; other items keep the ids that they have, because
// the output is the next request's input and a provider looks an unknown id of a call up.
func (x *exchange) compaction(a compactionAnswer, bodies [][]byte) error {
	id := uuid.Must(uuid.NewV7())
	a.ID = "resp_" + hex.EncodeToString(id[:])
	head, err := json.Marshal(a)
	if err != nil {
		return err
	}
	out := newBuffer()
	defer out.free()
	out.b = append(append(out.b, head[:len(head)-1]...), `,"output":[`...)
	at := session.Address{Tenant: x.tenant, ID: a.ID}
	for i, body := range bodies {
		if i > 0 {
			out.b = append(out.b, ',')
		}
		if f := readFields(body); f.kind != "message" {
			out.b = append(out.b, body...)
			continue
		}
		out.b = appendItem(out.b, &item{id: itemID(at, int64(i+1), 0, "message"), body: body})
	}
	out.b = append(out.b, "]}"...)
	return x.bytes(http.StatusOK, jsonType, out.b)
}
