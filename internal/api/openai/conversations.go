package openai

import (
	"bytes"
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// conversation is a session as OpenAI's Conversations API shows one.
type conversation struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"`
	CreatedAt int64           `json:"created_at"` // Unix seconds
	Metadata  json.RawMessage `json:"metadata"`
}

func conversationOf(s session.Session) conversation {
	return conversation{ID: s.ID, Object: "conversation", CreatedAt: s.CreatedAt.Unix(), Metadata: s.Metadata}
}

// maxFirstItems is how many items a conversation can be created with, as at OpenAI.
const maxFirstItems = 20

// createConversation handles POST /v1/conversations.
func (s *Server) createConversation(req *request.Request) error {
	b := conversationBody{limit: maxFirstItems, optional: true}
	if err := b.read(req, "items", "metadata"); err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	a := session.Append{
		Session: session.Address{Tenant: req.Tenant, ID: "conv_" + hex.EncodeToString(id[:])},
		Format:  session.OpenAIResponses, Messages: b.items, Idempotency: req.Idempotency(),
	}
	made, replayed, err := req.Store.CreateWith(req.Ctx, a, session.Change{Format: &a.Format, Metadata: b.metadata})
	req.SessionID = made.ID
	return request.AnswerChanged(req, made, replayed, err, conversationOf)
}

// readConversation handles GET /v1/conversations/{id}.
func (s *Server) readConversation(req *request.Request) error {
	found, err := req.Store.Session(req.Ctx, req.Address())
	return request.AnswerFound(req, found, err, conversationOf)
}

// updateConversation handles POST /v1/conversations/{id}.
func (s *Server) updateConversation(req *request.Request) error {
	b := conversationBody{}
	if err := b.read(req, "metadata"); err != nil {
		return err
	}
	change := session.Change{Metadata: b.metadata}
	changed, replayed, err := req.Store.Update(req.Ctx, req.Address(), change, req.Idempotency())
	return request.AnswerChanged(req, changed, replayed, err, conversationOf)
}

// deleted is the answer to a deletion.
type deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// deleteConversation handles DELETE /v1/conversations/{id}.
func (s *Server) deleteConversation(req *request.Request) error {
	at := req.Address()
	done, err := req.Store.Delete(req.Ctx, at, req.Idempotency())
	a := deleted{ID: at.ID, Object: "conversation.deleted", Deleted: true}
	return request.AnswerChanged(req, a, done.Replayed, err, request.AsIs)
}

// conversationBody is the body of a request that creates or changes a conversation. Members that it leaves out are nil.
type conversationBody struct {
	ingest.Batch
	limit    int  // of items
	optional bool // items and the body itself may be left out
	items    []session.NewMessage
	metadata []byte
}

// read checks the body and reads the members that it may have.
func (b *conversationBody) read(req *request.Request, members ...string) error {
	body := req.Body()
	return req.Heavy(int64(len(body)), func() error { return b.decode(body, members) })
}

func (b *conversationBody) decode(body []byte, members []string) error {
	if len(body) == 0 && b.optional {
		return nil
	}
	if err := b.Open(body); err != nil {
		return err
	}
	b.Format = session.OpenAIResponses
	empty := true
	for name, value := range b.Fields(members) {
		empty = false
		switch {
		case name == "metadata" && b.IsNull(value):
			b.metadata = []byte(`{}`)
		case name == "metadata":
			b.metadata = ingest.ReadMetadata(&b.Document, value)
		case !b.IsNull(value) || !b.optional:
			b.readItems(value)
		}
	}
	if empty && !b.optional && len(b.Problems) == 0 {
		b.Wrong("/"+members[0], request.InvalidRequest, "%s is missing", members[0])
	}
	return b.Err()
}

// readItems reads the items, which point into the body.
func (b *conversationBody) readItems(value rawjson.Span) {
	array := value.Of(b.Data)
	if b.optional && array[0] == '[' && len(bytes.TrimSpace(array[1:len(array)-1])) == 0 {
		return
	}
	b.List("/items", value, b.limit)
	if len(b.Spans) <= b.limit {
		b.items, _ = b.Messages()
	}
}
