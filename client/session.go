package client

import (
	"context"
	"encoding/json"
	"iter"
	"math"

	"github.com/google/uuid"
)

// Settings are those of a session. The first append with them makes it; later ones compare format, model and window.
type Settings struct {
	Format         Format            `json:"format,omitempty"`
	Model          string            `json:"model,omitempty"`
	WindowTokens   int               `json:"window_tokens,omitempty"`
	OverheadTokens int               `json:"overhead_tokens,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	Policy         json.RawMessage   `json:"policy,omitempty"`
}

// Session is a session of a client. Step is all that most agents need.
type Session struct {
	ID       string
	Settings *Settings // nil for a session that must be there
	client   *Client
}

// Session returns a session without asking the server; settings may be nil.
func (c *Client) Session(id string, settings *Settings) *Session {
	return &Session{ID: id, Settings: settings, client: c}
}

// Batch is what is appended at once, all or nothing.
type Batch struct {
	Messages    []any    // of the provider's format; a json.RawMessage keeps its bytes
	Format      Format   // of the messages; "" for the session's
	ClientIDs   []string // of the messages, by which one that is sent again is known; nil for none
	ExpectedSeq *int64   // the session's last seq; nil does not check
	Usage       *Usage   // of the request whose answer is among the messages
	Key         string   // Idempotency-Key; "" makes one
}

// body is how a batch is sent.
type body struct {
	Messages    []any     `json:"messages"`
	Format      Format    `json:"format,omitempty"`
	ClientIDs   []string  `json:"client_ids,omitempty"`
	ExpectedSeq *int64    `json:"expected_seq,omitempty"`
	Usage       *Usage    `json:"usage,omitempty"`
	Session     *Settings `json:"session,omitempty"`
}

// Append appends messages.
func (s *Session) Append(ctx context.Context, b Batch) (Appended, error) {
	return s.append(ctx, b, nil)
}

// Step appends messages and returns what to send to the model next, in one call. view has the parameters of a context;
// the view fits the window unless it says otherwise. An *Error with Appended says why there is no view of messages that
// are in the log nevertheless.
func (s *Session) Step(ctx context.Context, b Batch, view Query) (View, error) {
	query := Query{"fit": "window"}
	for name, value := range view {
		query[name] = value
	}
	query["return"] = "context"
	done, err := s.append(ctx, b, query)
	switch {
	case err != nil:
		return View{}, err
	case done.Context != nil:
		return *done.Context, nil
	case done.Problem == nil: // an older server
		done.Problem = &Problem{Detail: "the answer has no view"}
	}
	return View{}, &Error{Status: done.Problem.Status, Problem: *done.Problem, Appended: &done}
}

func (s *Session) append(ctx context.Context, b Batch, query Query) (Appended, error) {
	if b.Key == "" {
		b.Key = uuid.NewString()
	}
	sent := body{b.Messages, b.Format, b.ClientIDs, b.ExpectedSeq, b.Usage, s.Settings}
	a, err := AppendMessages.With(ctx, s.client, Options{Query: query, Body: sent, Key: b.Key}, s.ID)
	return a.Value, err
}

// Context returns what to send to the model.
func (s *Session) Context(ctx context.Context, view Query) (View, error) {
	a, err := ReadContext.With(ctx, s.client, Options{Query: view}, s.ID)
	return a.Value, err
}

// Read reads the session's settings and sizes.
func (s *Session) Read(ctx context.Context) (SessionState, error) {
	a, err := ReadSession.Call(ctx, s.client, s.ID)
	return a.Value, err
}

// Messages returns the log from a seq on, as it was appended, page after page. An error ends it.
func (s *Session) Messages(ctx context.Context, from int64) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for from = max(from, 1); ; {
			page, err := ListMessages.With(ctx, s.client, Options{Query: Query{"from_seq": from}}, s.ID)
			if err != nil {
				yield(Message{}, err)
				return
			}
			for _, m := range page.Value.Data {
				if !yield(m, nil) {
					return
				}
			}
			if page.Value.NextSeq == nil {
				return
			}
			from = *page.Value.NextSeq
		}
	}
}

// ToolAnswer is what a tool that reads back answers: messages to be appended if it was given the id of a call, else a
// text.
type ToolAnswer struct {
	IsError  bool              `json:"is_error"`
	Messages []json.RawMessage `json:"messages"`
	Text     string            `json:"text"`
}

// Call runs a model's call of a tool with its arguments, an object or the string that Chat Completions has.
func (s *Session) Call(ctx context.Context, tool string, arguments any, callID string) (ToolAnswer, error) {
	body := map[string]any{"arguments": arguments}
	if callID != "" {
		body["call_id"] = callID
	}
	o := Options{Body: body, Key: uuid.NewString()}
	a, err := Route[ToolAnswer]("POST sessions/{id}/tools/{tool}").With(ctx, s.client, o, s.ID, tool)
	return a.Value, err
}

// Tools returns the definitions of the tools that read back, as the provider of a format takes them.
func (c *Client) Tools(ctx context.Context, f Format) ([]json.RawMessage, error) {
	type tools struct {
		Tools []json.RawMessage `json:"tools"`
	}
	a, err := Route[tools]("GET tools").With(ctx, c, Options{Query: Query{"format": f}})
	return a.Value.Tools, err
}

// Each returns the entries of a list, page after page. An error ends it.
func (r ListRoute[T]) Each(ctx context.Context, c *Client, query Query, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for a, err := range r.each(ctx, c, query, math.MaxInt, args) {
			if !yield(a.Value, err) {
				return
			}
		}
	}
}
