package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Protocol is the API that a request came by.
type Protocol string

// The protocols, each with its path.
const (
	Chat      Protocol = "/v1/chat/completions"
	Responses Protocol = "/v1/responses"
	Messages  Protocol = "/v1/messages"
)

// Request is a request of any protocol.
type Request struct {
	Protocol  Protocol
	Model     string
	System    string // system and developer messages, too
	Messages  []Message
	MaxTokens int // of the answer; 0 for no limit
	Body      []byte
}

// Message is a message of a request.
type Message struct {
	Role  string // user, assistant or tool
	Parts []Part
}

// The kinds of parts.
const (
	Text   = "text"
	Call   = "call"
	Result = "result"
	Other  = "other"
)

// Part is a part of a message.
type Part struct {
	Kind string
	Text string // of a call, its arguments
	Tool string // of a call
	ID   string // of calls and results
}

// fenced finds the delimiter of a transcript.
var fenced = regexp.MustCompile(`(?m)^=== transcript (\S+) (?:begins|ends)`)

// whole returns all that a model reads of a request, with every delimiter replaced by the same word, so that a request
// that differs in its delimiters alone is the same.
func (r *Request) whole() string {
	var b strings.Builder
	b.WriteString(r.System)
	for _, m := range r.Messages {
		b.WriteString("\n\x00" + m.Role)
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "\n\x01%s %s %s\n%s", p.Kind, p.Tool, p.ID, p.Text)
		}
	}
	text := b.String()
	for _, found := range fenced.FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, found[1], "delimiter")
	}
	return text
}

// Input identifies what a request asks of its model: two requests with the same input are the same question.
func (r *Request) Input() string {
	of := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", r.Protocol, r.Model, r.MaxTokens, r.whole()))
	return hex.EncodeToString(of[:16])
}

// tokensOf estimates the tokens of a text.
func tokensOf(text string) int { return (len(text) + 3) / 4 }
