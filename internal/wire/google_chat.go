package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Gemini over Chat Completions: the signature of a call is in its extra_content
// (https://ai.google.dev/gemini-api/docs/thought-signatures), or behind thoughtMark in its id, where LiteLLM puts it
// for clients that keep nothing else of a call (BerriAI/litellm#16895).

const thoughtMark = "__thought__"

// chatSignature returns the signature of a call of Chat Completions by its extra_content and its id, as a string
// literal; nil for none.
func chatSignature(extra []byte, id string) []byte {
	for _, owner := range []string{"google", "vertex"} {
		if signature := stringLiteral(valueOf(extra, owner), "thought_signature"); isSigned(signature) {
			return signature
		}
	}
	if _, signature, ok := strings.Cut(id, thoughtMark); ok && signature != "" {
		return rawjson.Quote(nil, []byte(signature))
	}
	return nil
}

// googleContent returns the extra_content of a call that has a signature.
func googleContent(p *Block) []byte {
	return wrap(nil, `{"google":{"thought_signature":`, p.Signature, "}}")
}

// chatCallsSigned checks V-D10.
func (c *checker) chatCallsSigned() {
	if !c.server.SignsCalls || provider.IsOlderGemini(c.Model) {
		return
	}
	for i := c.currentTurn(); i < len(c.messages); i++ {
		for call := range elementsOf(c.bodies[i], "tool_calls") {
			if chatSignature(valueOf(call, "extra_content"), stringMember(call, "id")) == nil {
				c.report(i, "call %q is the first of its message and has no signature", stringMember(call, "id"))
			}
			break
		}
	}
}
