package wire

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// fitUI changes what the provider behind the AI SDK would refuse of the request that its package makes of a message.
func (r *repairer) fitUI(n *Message) {
	if r.provider.Dialect != "" {
		r.fitInputs(n)
	}
	said := slices.ContainsFunc(n.Blocks, func(p Block) bool {
		shown := n.Role == User && (p.Kind == Image || p.Kind == File)
		becomesText := p.Kind == Opaque && !r.own(&p)
		return p.Kind == Text && len(p.Text) > len(`""`) || shown || becomesText || p.Kind == Result
	})
	if r.provider.Dialect != "" && (n.Role == User || n.Role == System) && !said {
		n.Blocks = nil // the package sends nothing of what is left
	}
}

// fitInputs makes the inputs of calls objects, or at least something.
func (r *repairer) fitInputs(n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Call {
			continue
		}
		missing := r.own(p) && member(p.Raw, "input") == (Span{})
		if !missing && (!r.provider.ObjectInputs || len(p.Value) > 0 && p.Value[0] == '{') {
			continue
		}
		if r.own(p) {
			r.repaired("V-U6", "input_as_object", n, "the input of call %q is an object", p.CallID)
		}
		p.Value = appendInput(nil, p.Value)
		p.Custom = false
		p.Edited, n.Edited = true, true
	}
}

// joinCalls makes one message of all that the assistant says in a row if there are calls behind the first message of
// it, where the provider wants calls directly after the user or after results.
func (r *repairer) joinCalls(list []Message) []Message {
	if !r.provider.CallsAfterUser {
		return list
	}
	var out []Message
	for len(list) > 0 {
		n := 1
		for list[0].Role == Assistant && n < len(list) && list[n].Role == Assistant {
			n++
		}
		hasCall := func(m Message) bool { return m.has(Call) }
		if slices.ContainsFunc(list[1:n], hasCall) {
			out = append(out, r.joinAll(list[:n]))
		} else {
			out = append(out, list[:n]...)
		}
		list = list[n:]
	}
	return out
}

// joinAll returns messages of the assistant as one.
func (r *repairer) joinAll(list []Message) Message {
	one := list[0]
	one.Blocks = slices.Clip(one.Blocks)
	for i := range list {
		if r.keepsFormat(&list[i]) {
			r.repaired("V-U12", "messages_joined", &list[i],
				"calls and what the assistant says before them are one message")
		}
		if i > 0 {
			one.Blocks = append(one.Blocks, list[i].Blocks...)
		}
	}
	one.Edited = true
	return one
}

func (r *repairer) own(p *Block) bool { return p.Format == r.target && p.Raw != nil && !p.Edited }

// adoptThoughts makes reasoning of Anthropic and OpenAI of what the AI SDK keeps of it, for the model that thought it.
func (r *repairer) adoptThoughts(n *Message) {
	switch {
	case n.Format != session.AISDK || n.Role != Assistant:
	case r.target == session.Anthropic && !r.isStale():
		r.adoptThinking(n)
	case r.target == session.OpenAIResponses:
		r.adoptReasoning(n)
	}
}

// adoptReasoning makes items of reasoning of thoughts that were kept encrypted. It leaves those out that only another
// provider can read.
func (r *repairer) adoptReasoning(n *Message) {
	if r.isForeign() {
		n.Blocks = slices.DeleteFunc(n.Blocks, func(p Block) bool {
			kept := keptFor(openAIOwner, p.Signature)
			return p.Kind == Reasoning && stringLiteral(kept, "reasoningEncryptedContent") != nil
		})
		return
	}
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Reasoning || len(p.Signature) == 0 {
			continue
		}
		kept := keptFor(openAIOwner, p.Signature)
		encrypted := stringLiteral(kept, "reasoningEncryptedContent")
		if encrypted == nil {
			continue
		}
		p.Raw = []byte(`{"type":"reasoning"`)
		if id := stringLiteral(kept, "itemId"); id != nil {
			if _, fault := r.ids.fault(itemHead{"reasoning", id}); fault == "" {
				p.Raw = with(p.Raw, `,"id":`, id)
			}
		}
		p.Raw = append(p.Raw, `,"summary":[`...)
		if p.Text != nil && !blank(p.Text) {
			p.Raw = wrap(p.Raw, `{"type":"summary_text","text":`, p.Text, "}")
		}
		p.Raw = wrap(p.Raw, `],"encrypted_content":`, encrypted, "}")
		p.Signature, p.Format = encrypted, r.target
		p.Edited = false
	}
}

func (r *repairer) adoptThinking(n *Message) {
	for i := range n.Blocks {
		p := &n.Blocks[i]
		if p.Kind != Reasoning || len(p.Signature) == 0 {
			continue
		}
		kept := valueOf(p.Signature, "anthropic")
		signature, data := stringLiteral(kept, "signature"), stringLiteral(kept, "redactedData")
		switch {
		case signature != nil && p.Text != nil:
			p.Raw = with(nil, `{"type":"thinking","thinking":`, p.Text)
			p.Raw = wrap(p.Raw, `,"signature":`, signature, "}")
			p.Signature, p.Format = signature, r.target
			p.Edited = false
		case data != nil:
			p.Raw = wrap(nil, `{"type":"redacted_thinking","data":`, data, "}")
			p.Text, p.Signature = nil, data
			p.Format, p.Edited = r.target, false
		}
	}
}

// stringLiteral returns a member that is a text of at least one character, else nil.
func stringLiteral(object []byte, name string) []byte {
	if object == nil {
		return nil
	}
	if value := valueOf(object, name); isSigned(value) {
		return value
	}
	return nil
}
