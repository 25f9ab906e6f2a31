package wire

import "unicode/utf8"

// reasoningGoesOn checks V-R3. The other half of the provider's rule, that a call which reasoning led to is not sent
// without that reasoning ("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item:
// 'rs_1'."), is not to be seen in a list: a call of a model that did not reason looks the same. Who takes items out
// of a list has to keep or drop them as one group.
func (c *checker) reasoningGoesOn() {
	for i := c.head; i < len(c.messages); i++ {
		item := c.body(i)
		if !isType(item, "reasoning") {
			continue
		}
		switch {
		case i+1 == len(c.messages) || c.messages[i+1].Role != "assistant":
			c.report(i, "no item of the model follows its reasoning")
		case byID(item) && member(c.body(i+1), "id") == (Span{}):
			c.report(i, "the item behind the reasoning is not known to be its own: it has no id")
		}
	}
}

// byID reports whether the provider finds a reasoning by its id alone: it is not in the item itself.
func byID(item []byte) bool {
	return member(item, "id") != (Span{}) && member(item, "encrypted_content") == (Span{})
}

// callLengths checks V-R4.
func (c *checker) callLengths() {
	c.parts(func(i int, p *Part) {
		if n := utf8.RuneCountInString(p.CallID); n == 0 || n > c.rule.limits["id"] {
			c.report(i, "call_id %q has %d characters, not 1 to %d", p.CallID, n, c.rule.limits["id"])
		}
		if n := utf8.RuneCountInString(p.Name); n > c.rule.limits["name"] {
			c.report(i, "the name of the tool has %d characters, at most %d are possible", n, c.rule.limits["name"])
		}
	}, Call, Result)
}
