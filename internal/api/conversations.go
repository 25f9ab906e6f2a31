package api

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// conversationAnswer is a session as OpenAI's Conversations API shows one.
type conversationAnswer struct {
	ID        string          `json:"id"`
	Object    string          `json:"object"`
	CreatedAt int64           `json:"created_at"` // Unix seconds
	Metadata  json.RawMessage `json:"metadata"`
}

func conversationOf(s session.Session) conversationAnswer {
	return conversationAnswer{ID: s.ID, Object: "conversation", CreatedAt: s.CreatedAt.Unix(), Metadata: s.Metadata}
}

// maxFirstItems is how many items a conversation can be created with, as at OpenAI.
const maxFirstItems = 20

// createConversation is POST /v1/conversations.
func (s *Server) createConversation(req *request.Request) error {
	openAIQuery(req)
	body := req.Body()
	if err := req.Err(); err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	format := session.OpenAIResponses
	a := session.Append{Session: session.Address{Tenant: req.Tenant, ID: "conv_" + hex.EncodeToString(id[:])}, Format: format}
	a.Idempotency = req.Idempotency()
	if err := req.Err(); err != nil {
		return err
	}
	d := conversationBody{most: maxFirstItems, optional: true}
	d.Data = body
	if err := d.read("items", "metadata"); err != nil {
		return err
	}
	a.Messages = d.items
	made, replayed, err := s.Store.CreateWith(req.Ctx, a, session.Change{Format: &format, Metadata: d.metadata})
	if err != nil {
		return err
	}
	req.SessionID = made.ID
	req.Replayed(a.Idempotency, replayed)
	return req.JSON(http.StatusOK, conversationOf(made))
}

// readConversation is GET /v1/conversations/{id}.
func (s *Server) readConversation(req *request.Request) error {
	at := conversationAddress(req)
	if err := req.Err(); err != nil {
		return err
	}
	found, err := s.Store.Session(req.Ctx, at)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, conversationOf(found))
}

// updateConversation is POST /v1/conversations/{id}.
func (s *Server) updateConversation(req *request.Request) error {
	at := conversationAddress(req)
	if err := req.Err(); err != nil {
		return err
	}
	body := req.Body()
	id := req.Idempotency()
	if err := req.Err(); err != nil {
		return err
	}
	d := conversationBody{}
	d.Data = body
	if err := d.read("metadata"); err != nil {
		return err
	}
	changed, replayed, err := s.Store.Update(req.Ctx, at, session.Change{Metadata: d.metadata}, id)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	return req.JSON(http.StatusOK, conversationOf(changed))
}

// deletedAnswer says that a conversation is gone.
type deletedAnswer struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// deleteConversation is DELETE /v1/conversations/{id}.
func (s *Server) deleteConversation(req *request.Request) error {
	at := conversationAddress(req)
	if err := req.Err(); err != nil {
		return err
	}
	id := req.EmptyBody()
	if err := req.Err(); err != nil {
		return err
	}
	replayed, err := s.Store.Delete(req.Ctx, at, id)
	if err != nil {
		return err
	}
	req.Replayed(id, replayed)
	return req.JSON(http.StatusOK, deletedAnswer{ID: at.ID, Object: "conversation.deleted", Deleted: true})
}

// conversation is the session that the path names, for a route that has no parameters of its own.
func conversationAddress(req *request.Request) session.Address {
	openAIQuery(req)
	return req.Address()
}

// openAIQuery is query for a route of OpenAI's API. What a client sends with every request is allowed at each of them:
// include asks for what is stored anyway, view is for lists.
func openAIQuery(req *request.Request, known ...string) *request.Query {
	q := req.ParseQuery()
	for _, name := range []string{"include", "include[]"} {
		delete(q.Values, name)
	}
	return q.Check(append(known, "view"))
}

// conversationBody is the body of a request that makes or changes a conversation. What it does not say is nil.
type conversationBody struct {
	appendBody
	most     int  // how many items it may have
	optional bool // it need not have any, nor a body at all
	items    []session.NewMessage
	metadata []byte
}

// read checks the body and reads the members that it may have.
func (d *conversationBody) read(members ...string) error {
	if len(d.Data) == 0 && d.optional {
		return nil
	}
	if err := d.checkBatch(); err != nil {
		return err
	}
	there := false
	for name, value := range d.Members("", rawjson.Value(d.Data), members) {
		there = true
		switch {
		case d.Data[value.Start] == 'n' && name == "metadata":
			d.metadata = []byte(`{}`)
		case name == "metadata":
			d.metadata = readMetadata(&d.Document, value)
		case d.Data[value.Start] != 'n' || !d.optional:
			d.readItems(value)
		}
	}
	if !there && !d.optional && len(d.Problems) == 0 {
		d.Wrong("/"+members[0], request.InvalidRequest, "%s is missing", members[0])
	}
	return d.Err()
}

// readItems reads the items into messages, which point into the body.
func (d *conversationBody) readItems(value rawjson.Span) {
	spans, ok := d.Array("/items", value)
	switch {
	case ok && len(spans) == 0 && !d.optional:
		d.Wrong("/items", request.InvalidRequest, "items is empty: 1 to %d items are possible", d.most)
	case len(spans) > d.most:
		d.Wrong("/items", "too_many_messages", "there are %d items, %d are the most: add more with POST /v1/conversations/{id}/items", len(spans), d.most)
		return
	}
	d.items = make([]session.NewMessage, len(spans))
	for i, span := range spans {
		d.message(i, session.OpenAIResponses, span, &d.items[i])
	}
	d.Rename("/messages", "/items")
}

// openAIProblem is an error in the shape of OpenAI's API.
func openAIProblem(f *request.Failure, status int) any {
	e := protocol.OpenAIError{Message: f.Detail, Type: errorType(status), Code: f.Code}
	if len(f.Problems) > 0 {
		param := openAIParam(f.Problems[0].Pointer)
		e.Param = &param
	}
	return struct {
		Error protocol.OpenAIError `json:"error"`
	}{e}
}

// openAIStatus is the status that OpenAI's API has for one of ours.
func openAIStatus(status int) int {
	if status == http.StatusUnprocessableEntity {
		return http.StatusBadRequest
	}
	return status
}

// openAIParam writes a JSON pointer as OpenAI does: "/items/0/content" is "items[0].content".
func openAIParam(pointer string) string {
	var param strings.Builder
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		_, err := strconv.Atoi(step)
		switch {
		case err == nil && param.Len() > 0:
			param.WriteString("[" + step + "]")
		case param.Len() > 0:
			param.WriteString("." + step)
		default:
			param.WriteString(step)
		}
	}
	return param.String()
}

// errNoItem is the error of an item that is not there, or not any more.
var errNoItem = errors.New("no such item")
