package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/api/stateless"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire"
)

// countTokens handles POST /v1/tokens.
func (s *Server) countTokens(req *request.Request) error {
	var b *tokensBody
	err := req.Heavy(int64(len(req.Body())), func() (err error) {
		b, err = decodeTokens(req.Body())
		return err
	})
	if err != nil {
		return err
	}
	weight := admit.HeavyWork(int64(len(b.Data)))
	if b.tokenizer != ingest.Estimated {
		weight = admit.HeavyCount(len(b.Data))
	}
	var answer tokensAnswer
	err = s.CPU.Do(req.Ctx, req.Tenant, weight, func() (err error) {
		answer, err = b.answer(req.Ctx)
		return err
	})
	return request.AnswerFound(req, answer, err, request.AsIs)
}

// tokensAnswer counts the tokens of messages or of a text.
type tokensAnswer struct {
	Tokenizer string          `json:"tokenizer"`
	Tokens    int             `json:"tokens"`
	Messages  []messageTokens `json:"messages"` // empty for a text
}

type messageTokens struct {
	Tokens int          `json:"tokens"` // of the parts and 4 for the message
	Parts  []partTokens `json:"parts"`
}

type partTokens struct {
	Kind   string `json:"kind" schema:"enum: [text, image, file, call, result, reasoning, opaque]"`
	Tokens int    `json:"tokens"`
}

// tokensBody is the body of POST /v1/tokens: messages as an append has them, or a text.
type tokensBody struct {
	ingest.Batch
	text             rawjson.Span
	tokenizer, model string
}

var tokensFields = []string{"format", "messages", "text", "tokenizer", "model"}

func decodeTokens(body []byte) (*tokensBody, error) {
	b := &tokensBody{}
	if err := b.Open(body); err != nil {
		return nil, err
	}
	var messages rawjson.Span
	for name, value := range b.Fields(tokensFields) {
		switch name {
		case "format":
			b.Format = b.ReadFormat(value)
		case "messages":
			messages = value
		case "text":
			b.text = value
			if b.Data[value.Start] != '"' {
				b.Wrong("/text", request.InvalidRequest, "must be a string, not %s", b.Kind(value))
			}
		case "tokenizer":
			b.tokenizer = readTokenizer(&b.Document, value)
		case "model":
			b.model, _ = b.Text("/model", value, session.MaxIDBytes)
		}
	}
	b.tokenizer = cmp.Or(b.tokenizer, tokens.ForModel(b.model), ingest.Estimated)
	if len(b.Problems) == 0 {
		b.checkSubject(messages)
	}
	if len(b.Problems) == 0 && messages != (rawjson.Span{}) {
		b.List("/messages", messages, stateless.MaxMessages)
	}
	return b, b.Err()
}

// readTokenizer reads the name of a tokenizer.
func readTokenizer(d *request.Document, value rawjson.Span) string {
	name, ok := d.Text("/tokenizer", value, session.MaxIDBytes)
	known := append([]string{ingest.Estimated}, tokens.Tokenizers()...)
	if ok && !slices.Contains(known, name) {
		d.Wrong("/tokenizer", request.InvalidRequest, "tokenizer %q is unknown: there are %s", spelling.Shorten(name),
			strings.Join(known, ", "))
	}
	return name
}

// checkSubject requires messages with their format, or a text.
func (b *tokensBody) checkSubject(messages rawjson.Span) {
	var none rawjson.Span
	switch {
	case messages == none && b.text == none:
		b.Wrong("/messages", request.InvalidRequest, "messages is missing: it must be an array of 1 to %d messages; "+
			"or send text, a string",
			stateless.MaxMessages)
	case messages != none && b.text != none:
		b.Wrong("/text", request.InvalidRequest, "text must not come with messages: send one of the two")
	case messages != none:
		b.RequireFormat()
	case b.Format != "":
		b.Wrong("/format", request.InvalidRequest, "a text has no format: leave it out")
	}
}

func (b *tokensBody) answer(ctx context.Context) (a tokensAnswer, err error) {
	a.Tokenizer = b.tokenizer
	a.Messages = []messageTokens{}
	exact := ingest.NewExact(ctx, b.tokenizer)
	if b.text != (rawjson.Span{}) {
		a.Tokens, err = b.countText(exact)
		return a, tooLong(err)
	}
	for i := range b.Spans {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		found, err := b.countMessage(exact, i)
		if err != nil {
			return a, tooLong(err)
		}
		m := messageTokens{Tokens: found.Tokens, Parts: make([]partTokens, len(found.Parts))}
		for i, part := range found.Parts {
			m.Parts[i] = partTokens{Kind: part.Kind.String(), Tokens: part.Tokens}
		}
		a.Messages = append(a.Messages, m)
		a.Tokens += m.Tokens
	}
	return a, b.Err()
}

func (b *tokensBody) countText(exact *ingest.Exact) (int, error) {
	literal := b.text.Of(b.Data)
	if b.tokenizer == ingest.Estimated {
		return tokens.EstimateLiteral(literal), nil
	}
	text, _ := rawjson.Unquote(nil, literal)
	return exact.Text(string(text))
}

// tooLong tells a caller what to do about texts that are too long to be counted exactly.
func tooLong(err error) error {
	if errors.Is(err, ingest.ErrTooLong) {
		return request.Fail("body_too_large", "%s: send less, or let the tokenizer be %q", err, ingest.Estimated)
	}
	return err
}

// countMessage inspects message i with the tokenizer of the request. What is wrong with a message is added to what is
// wrong with the body.
func (b *tokensBody) countMessage(exact *ingest.Exact, i int) (wire.Facts, error) {
	found, ok := b.Inspect(i)
	if !ok || b.tokenizer == ingest.Estimated {
		return found, nil
	}
	return exact.Message(b.Format, b.Body(i))
}
