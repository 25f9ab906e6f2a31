package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// countTokens is POST /v1/tokens. It has no effect, so an Idempotency-Key says nothing to it.
func (s *Server) countTokens(req *request.Request) error {
	req.Query()
	body := req.Body()
	if err := req.Err(); err != nil {
		return err
	}
	d := tokensBody{appendBody: appendBody{Document: request.Document{Data: body}}}
	if err := d.read(); err != nil {
		return err
	}
	answer, err := d.answer(req.Ctx)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, answer)
}

// tokensAnswer is what messages or a text cost.
type tokensAnswer struct {
	Tokenizer string          `json:"tokenizer"`
	Tokens    int             `json:"tokens"`
	Messages  []messageTokens `json:"messages"`
}

type messageTokens struct {
	Tokens int          `json:"tokens"` // the parts' and the message's own
	Parts  []partTokens `json:"parts"`
}

type partTokens struct {
	Kind   string `json:"kind"`
	Tokens int    `json:"tokens"`
}

// estimated is the tokenizer of whoever names none.
const estimated = string(policy.Estimate)

// tokensBody is the body of POST /v1/tokens: messages as an append has them, or a text.
type tokensBody struct {
	appendBody
	literal          rawjson.Span // of the text
	tokenizer, model string
}

var tokensFields = []string{"format", "messages", "text", "tokenizer", "model"}

func (d *tokensBody) read() error {
	if err := d.checkBatch(); err != nil {
		return err
	}
	for name, value := range d.Members("", rawjson.Value(d.Data), tokensFields) {
		d.set(name, value)
	}
	if d.tokenizer == "" {
		d.tokenizer = tokens.ForModel(d.model)
	}
	if d.tokenizer == "" {
		d.tokenizer = estimated
	}
	if len(d.Problems) == 0 {
		d.checkSubject()
	}
	return d.Err()
}

func (d *tokensBody) set(name string, value rawjson.Span) {
	switch name {
	case "format":
		d.format = d.Format(value)
	case "messages":
		d.messages = value
	case "text":
		d.literal = value
		if d.Data[value.Start] != '"' {
			d.Wrong("/text", request.InvalidRequest, "a string is needed, this is %s", d.Kind(value))
		}
	case "tokenizer":
		d.tokenizer = readTokenizer(&d.Document, value)
	case "model":
		d.model, _ = d.Text("/model", value, session.MaxIDBytes)
	}
}

// readTokenizer reads the name of a tokenizer that we have.
func readTokenizer(d *request.Document, value rawjson.Span) string {
	name, ok := d.Text("/tokenizer", value, session.MaxIDBytes)
	known := append([]string{estimated}, tokens.Tokenizers()...)
	if ok && !slices.Contains(known, name) {
		d.Wrong("/tokenizer", request.InvalidRequest, "tokenizer %q is unknown: there are %s", request.Shorten(name), strings.Join(known, ", "))
	}
	return name
}

// checkSubject requires messages with their format, or a text.
func (d *tokensBody) checkSubject() {
	var none rawjson.Span
	switch {
	case d.messages == none && d.literal == none:
		d.Wrong("/messages", request.InvalidRequest, "messages is missing: an array of 1 to %d messages, or text, a string, instead", session.MaxBatchMessages)
	case d.messages != none && d.literal != none:
		d.Wrong("/text", request.InvalidRequest, "there are messages, too: send one of the two")
	case d.messages != none && d.format == "":
		d.Wrong("/format", request.InvalidRequest, "format is missing: say %s", request.Formats())
	case d.literal != none && d.format != "":
		d.Wrong("/format", request.InvalidRequest, "a text has no format: leave it out")
	}
}

func (d *tokensBody) answer(ctx context.Context) (tokensAnswer, error) {
	a := tokensAnswer{Tokenizer: d.tokenizer, Messages: []messageTokens{}}
	if d.literal != (rawjson.Span{}) {
		total, err := d.countText()
		a.Tokens = total
		return a, err
	}
	spans, err := d.batch()
	if err != nil {
		return a, err
	}
	for i, span := range spans {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		found := d.countMessage(i, span)
		m := messageTokens{Tokens: found.Tokens, Parts: make([]partTokens, len(found.Parts))}
		for i, part := range found.Parts {
			m.Parts[i] = partTokens{Kind: part.Kind.String(), Tokens: part.Tokens}
		}
		a.Messages = append(a.Messages, m)
		a.Tokens += m.Tokens
	}
	return a, d.Err()
}

func (d *tokensBody) countText() (int, error) {
	literal := d.literal.Of(d.Data)
	if d.tokenizer == estimated {
		return tokens.EstimateLiteral(literal), nil
	}
	text, _ := rawjson.Unquote(nil, literal)
	return tokens.Count(d.tokenizer, string(text))
}

// countMessage inspects one message with the tokenizer that was asked for. What is wrong with it is noted.
func (d *tokensBody) countMessage(i int, span rawjson.Span) wire.Facts {
	body := span.Of(d.Data)
	if err := d.checkMessage(i, body); err != nil {
		d.Add("", err)
		return wire.Facts{}
	}
	found, err := wire.Inspect(d.format, body)
	if err == nil && d.tokenizer != estimated {
		found, err = wire.Count(d.format, body, func(text string) (int, error) { return tokens.Count(d.tokenizer, text) })
	}
	if err != nil {
		d.Add(request.PointerTo("/messages", i), err)
	}
	return found
}
