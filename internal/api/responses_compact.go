package api

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/compactor"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/view"
)

// compactResponses is POST /v1/responses/compact: items in, a shorter list of items out. Items that come with the request
// are not stored, and nothing is done for an Idempotency-Key; a conversation that it names is compacted as such.
func (s *Server) compactResponses(req *request.Request) error {
	d := responsesBody{}
	d.windows, d.format, d.force = s.Models, session.OpenAIResponses, true
	if err := d.readQuery(openAIQuery(req, "tools", "window_tokens")); err != nil {
		return err
	}
	body := req.Body()
	if err := req.Err(); err != nil {
		return err
	}
	d.Data = body
	id := req.Idempotency()
	if err := req.Err(); err != nil {
		return err
	}
	var err error
	if d.layers, err = s.tenantLayers(req, session.Address{}); err != nil {
		return err
	}
	if err := d.read(); err != nil {
		return err
	}
	answer := compactionAnswer{Object: "response.compaction", CreatedAt: time.Now().Unix()}
	var bodies [][]byte
	if d.previous != "" {
		bodies, err = s.compactConversation(req, d.previous, id)
	} else {
		bodies, err = d.compact(req, &answer)
	}
	if err != nil {
		return err
	}
	if bodies = d.rendered(nil, bodies).Bodies; d.asText {
		bodies = withoutTools(bodies)
	}
	return answerCompaction(req, answer, bodies)
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

func (d *responsesBody) readQuery(q *request.Query) error {
	d.asText = q.Choice("tools", "text", "items") == "text"
	d.window = int(q.Integer("window_tokens", minWindowTokens, maxWindowTokens, 0))
	return q.Err()
}

// read checks the body and finds its members. null is as good as none.
func (d *responsesBody) read() error {
	limits := batchLimits
	limits.Nodes = 0
	if err := d.Check(limits); err != nil {
		return err
	}
	d.large = rawjson.Check(d.Data, batchLimits) != nil
	for name, value := range d.Members("", rawjson.Value(d.Data), responsesFields) {
		if d.Data[value.Start] == 'n' {
			continue
		}
		if err := d.member(name, value); err != nil {
			return err
		}
	}
	switch {
	case d.messages == nil && d.previous == "" && len(d.Problems) == 0:
		d.Wrong("/input", request.InvalidRequest, "input is missing: a string or an array of items, or previous_response_id with the id of a conversation")
	case d.messages != nil && d.previous != "":
		d.Wrong("/previous_response_id", request.InvalidRequest, "leave either input or previous_response_id out: a conversation has its items here")
	}
	if d.window == 0 {
		d.window = session.DefaultWindowTokens
	}
	if d.policy == nil && len(d.Problems) == 0 {
		var err error
		if d.policy, err = tenantPolicyOf(&d.Document, d.layers); err != nil {
			return err
		}
	}
	return d.Err()
}

func (d *responsesBody) member(name string, value rawjson.Span) error {
	switch name {
	case "model":
		d.model, _ = d.Text("/model", value, session.MaxIDBytes)
		if known, ok := d.windows.Find(d.model); ok && d.window == 0 {
			d.window = known.Window()
		}
	case "input":
		d.readInput(value)
	case "previous_response_id":
		d.previous, _ = d.Text("/previous_response_id", value, session.MaxIDBytes)
	case "instructions":
		if _, ok := d.Text("/instructions", value, session.MaxMessageBytes); ok {
			d.overhead += tokens.EstimateLiteral(value.Of(d.Data))
		}
	default:
		return d.set(name, value)
	}
	return nil
}

// readInput finds the items. One string is a message of the user.
func (d *responsesBody) readInput(value rawjson.Span) {
	if d.Data[value.Start] != '"' {
		d.messages = d.batch(value)
		d.Rename("/messages", "/input")
		return
	}
	start := len(d.Data)
	d.Data = append(append(append(d.Data[:start:start], `{"role":"user","content":`...), value.Of(d.Data)...), '}')
	d.messages = []rawjson.Span{{Start: start, End: len(d.Data)}}
}

// compact compacts the items of the request.
func (d *responsesBody) compact(req *request.Request, a *compactionAnswer) ([][]byte, error) {
	snap, _, err := d.snapshot()
	if err != nil {
		d.Rename("/messages", "/input")
		return nil, d.Err()
	}
	if snap, err = withTools(snap); err != nil {
		return nil, err
	}
	p, err := compactor.ProposeAlone(req.Ctx, snap, *d.policy, d.force)
	if err != nil {
		return nil, err
	}
	what := compactedOf(p, d.includeResults)
	a.Compaction = &what
	return view.Split(appendCompacted(nil, p))
}

// conversationWait is how long a conversation's compaction may take before the caller has to ask again.
const conversationWait = 25 * time.Second

// compactConversation has a conversation compacted, as POST /v1/sessions/{id}/compact does, and reads its view.
func (s *Server) compactConversation(req *request.Request, id string, key *session.Idempotency) ([][]byte, error) {
	at := session.Address{Tenant: req.Tenant, ID: id}
	req.SessionID = id
	run, replayed, err := s.Store.Compact(req.Ctx, at, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, request.Fail("not_found", "there is no conversation %q: Varve keeps conversations and no responses; send their items as input (compactionMode \"input\")", request.Shorten(id))
	case err != nil:
		return nil, err
	}
	w := waiter{Request: req, server: s, at: at, up: time.Now().Add(conversationWait)}
	if run, err = w.wait(run, replayed); err != nil {
		return nil, err
	}
	if !run.State.Ended() {
		return nil, request.Fail(request.Unavailable, "the compaction has not ended yet: ask again, run %s goes on", run.ID)
	}
	req.Replayed(key, replayed)
	stored, err := s.Store.ViewWithSources(req.Ctx, at)
	if err != nil {
		return nil, err
	}
	return viewBodies(at, &stored)
}

func viewBodies(at session.Address, v *postgres.ViewWithSources) (bodies [][]byte, err error) {
	items, err := viewItems(at, v)
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
func answerCompaction(req *request.Request, a compactionAnswer, bodies [][]byte) error {
	id := uuid.Must(uuid.NewV7())
	a.ID = "resp_" + hex.EncodeToString(id[:])
	head, err := json.Marshal(a)
	if err != nil {
		return err
	}
	out := req.Buffer()
	out.B = append(append(out.B, head[:len(head)-1]...), `,"output":[`...)
	at := session.Address{Tenant: req.Tenant, ID: a.ID}
	for i, body := range bodies {
		if i > 0 {
			out.B = append(out.B, ',')
		}
		if f := readFields(body); f.kind != "message" {
			out.B = append(out.B, body...)
			continue
		}
		out.B = appendItem(out.B, &item{id: itemID(at, int64(i+1), 0, "message"), body: body})
	}
	out.B = append(out.B, "]}"...)
	return req.Bytes(http.StatusOK, request.JSONType, out.B)
}
