package wire

import (
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Gemini over Chat Completions: the signature of a call is in its extra_content
// (https://ai.google.dev/gemini-api/docs/thought-signatures), in provider_specific_fields of the call or its function,
// where LiteLLM has it, or behind thoughtMark in the id, where LiteLLM puts it for clients that keep nothing else of a
// call (BerriAI/litellm#16895).

const (
	thoughtMark   = "__thought__"
	litellmFields = "provider_specific_fields"
)

// chatSignature returns the signature of a call of Chat Completions, as a string literal; nil for none.
func chatSignature(id string, extra []byte, litellm ...[]byte) []byte {
	for _, kept := range append([][]byte{valueOf(extra, "google"), valueOf(extra, "vertex")}, litellm...) {
		if signature := stringLiteral(kept, "thought_signature"); signature != nil {
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
			litellm := valueOf(valueOf(call, "function"), litellmFields)
			if chatSignature(stringMember(call, "id"), valueOf(call, "extra_content"), valueOf(call, litellmFields),
				litellm) == nil {
				c.report(i, "call %q is the first of its message and has no signature", stringMember(call, "id"))
			}
			break
		}
	}
}
