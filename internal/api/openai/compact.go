package openai

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/models"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// compactResponses handles POST /v1/responses/compact: items in, a shorter list of items out. Items of the request are
// not stored, and an Idempotency-Key has no effect on them; a conversation that the request names is compacted in its
// session.
func (s *Server) compactResponses(req *request.Request) error {
	q := req.Query()
	asText := q.Choice("tools", "text", "items") == "text"
	b := compactBody{}
	b.Window = int(q.Integer("window_tokens", session.MinWindowTokens, session.MaxWindowTokens, 0))
	if err := req.Err(); err != nil {
		return err
	}
	size := int64(len(req.Body()))
	if err := req.Heavy(size, func() error { return b.decode(req.Body()) }); err != nil {
		return err
	}
	tenant, err := req.Store.TenantPolicy(req.Ctx, req.Tenant)
	if err != nil {
		return err
	}
	b.Resolve(session.PolicyLayers{Tenant: tenant.Patch}, s.Writers)
	if err := b.Err(); err != nil {
		return err
	}
	answer := compaction{Object: "response.compaction", CreatedAt: time.Now().Unix(), Usage: noUsage}
	var bodies [][]byte
	if b.previous != "" {
		bodies, err = s.compactConversation(req, b.previous)
		size = sizeOf(bodies)
	} else {
		err = b.Admit(req)
	}
	if err != nil {
		return err
	}
	err = req.Heavy(size, func() (err error) {
		if b.previous == "" {
			bodies, err = b.compact(req, &answer)
		}
		if err == nil {
			bodies, err = b.output(req, bodies, asText)
		}
		return err
	})
	if err != nil {
		return err
	}
	return answerCompaction(req, answer, bodies)
}

func sizeOf(bodies [][]byte) (bytes int64) {
	for _, body := range bodies {
		bytes += int64(len(body))
	}
	return bytes
}

// output returns the items of the answer.
func (b *compactBody) output(req *request.Request, bodies [][]byte, asText bool) ([][]byte, error) {
	made, err := b.Render(req.Ctx, bodies...)
	if err != nil {
		return nil, err
	}
	if asText {
		return withoutTools(made.Bodies), nil
	}
	return made.Bodies, nil
}

// compactBody is the body of POST /v1/responses/compact. Beside OpenAI's members it may have those of POST /v1/compact
// that control the compaction.
type compactBody struct {
	stateless.Body
	previous string // the id of a conversation
}

// Members that control a model's request change nothing here.
var (
	ignored = []string{"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier",
		"image"}
	compactFields = append([]string{
		"model", "input", "previous_response_id", "instructions", "policy", "window_tokens", "overhead_tokens",
		"force", "include_results",
	}, ignored...)
)

// decode checks the body and reads its members. A member that is null counts as left out.
func (b *compactBody) decode(body []byte) error {
	if err := b.Open(body); err != nil {
		return err
	}
	b.Format = session.OpenAIResponses
	b.Force = true
	for name, value := range b.Fields(compactFields) {
		switch {
		case b.IsNull(value):
		case name == "input":
			b.readInput(value)
		case name == "previous_response_id":
			b.previous, _ = b.Text("/previous_response_id", value, session.MaxIDBytes)
		case name == "instructions":
			if _, ok := b.Text("/instructions", value, session.MaxMessageBytes); ok {
				b.Overhead += tokens.EstimateLiteral(value.Of(b.Data))
			}
		default:
			b.Set(name, value)
		}
	}
	switch {
	case b.Spans == nil && b.previous == "" && len(b.Problems) == 0:
		b.Wrong("/input", request.InvalidRequest,
			"input is missing: it must be a string or an array of items; or send previous_response_id with the id "+
				"of a conversation")
	case b.Spans != nil && b.previous != "":
		b.Wrong("/previous_response_id", request.InvalidRequest,
			"previous_response_id must not come with input: a conversation has its items here")
	}
	b.Window = cmp.Or(b.Window, models.Of(b.Model).Window(), session.DefaultWindowTokens)
	return nil
}

// readInput finds the items. A string is a message of the user.
func (b *compactBody) readInput(value rawjson.Span) {
	if b.Data[value.Start] != '"' {
		b.ReadMessages("/input", value)
		return
	}
	start := len(b.Data)
	b.Data = append(append(append(b.Data[:start:start], `{"role":"user","content":`...), value.Of(b.Data)...), '}')
	b.Spans = []rawjson.Span{{Start: start, End: len(b.Data)}}
}

// compact compacts the items of the request.
func (b *compactBody) compact(req *request.Request, answer *compaction) ([][]byte, error) {
	snap, _, err := b.Snapshot()
	if err != nil {
		return nil, err
	}
	if snap, err = withTools(snap); err != nil {
		return nil, err
	}
	p, err := b.Propose(req.Ctx, admit.Processors{}, req.Tenant, nil, snap) // which asks no model
	if err != nil {
		return nil, err
	}
	figures := stateless.FiguresOf(p, b.IncludeResults, nil)
	answer.Compaction = &figures
	return stateless.Messages(p)
}

// conversationWait is how long the compaction of a conversation may take before the caller has to ask again.
const conversationWait = 25 * time.Second

// compactConversation compacts a conversation as POST /v1/sessions/{id}/compact does, and reads its view. The newest
// items of that are whole, unless they leave it no room in the window.
func (s *Server) compactConversation(req *request.Request, id string) (bodies [][]byte, err error) {
	at := session.Address{Tenant: req.Tenant, ID: id}
	req.SessionID = id
	if err := s.Awake(req.Ctx, at); err != nil {
		return nil, err
	}
	run, replayed, err := s.Waiter.Compact(req, at, conversationWait)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, request.Fail(request.NotFound, "there is no conversation %q: Varve stores conversations and no "+
			"responses; "+
			"send their items as input (compactionMode \"input\")", spelling.Shorten(id))
	case err != nil:
		return nil, err
	}
	if !run.State.Ended() {
		return nil, request.Fail(request.Unavailable, "the compaction has not ended yet: ask again, run %s is in "+
			"progress", run.ID)
	}
	req.Replayed(replayed)
	items, room, err := s.viewItems(req, at)
	if err != nil {
		return nil, err
	}
	for i := range items {
		bodies = append(bodies, items[i].body)
	}
	size := int64(0)
	err = req.Heavy(sizeOf(bodies), func() error {
		for _, body := range bodies {
			facts, _ := wire.Inspect(session.OpenAIResponses, body) // what cannot be read has no size
			size += int64(facts.Tokens)
		}
		return nil
	})
	if err != nil || size <= room {
		return bodies, err
	}
	made, err := s.fitted(req, at, 0.95) // the rest is for what withoutTools writes around calls
	if err != nil {
		return nil, err
	}
	return made.Bodies, nil
}

// largeView is the size in bytes above which a view is weighed.
const largeView = 1 << 20

// compaction is a compaction as OpenAI's API answers it, without its output, and with what it did in a member of ours.
type compaction struct {
	ID         string             `json:"id"`
	Object     string             `json:"object"`
	CreatedAt  int64              `json:"created_at"` // Unix seconds
	Usage      json.RawMessage    `json:"usage"`
	Compaction *stateless.Figures `json:"compaction,omitempty"` // left out for a conversation, whose runs report it
}

// noUsage counts the tokens of a compaction's requests to a model. It sends none except for summaries, whose cost is
// the operator's.
var noUsage = json.RawMessage(`{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,` +
	`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`)

// answerCompaction answers with items. Messages get ids, which clients copy; other items keep their own ids, because
// the output is the next request's input and a provider looks up the id of a call.
func answerCompaction(req *request.Request, a compaction, bodies [][]byte) error {
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
