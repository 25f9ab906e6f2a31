package wire

import (
	"bytes"

	"github.com/varve-dev/varve/internal/rawjson"
)

// thinkingSealed is V-A7. Whether thinking came back unmodified cannot be seen, but that it is complete, and where it
// stands.
func (c *checker) thinkingSealed() {
	c.parts(func(i int, p *Part) {
		block := c.raw(i, p)
		if stringMember(block, "signature") == "" && stringMember(block, "data") == "" {
			c.report(i, "thinking has no signature")
		}
	}, Reasoning)
	if t, ok := c.latestAssistant(); ok {
		c.thinkingFirst(t)
	}
}

// stringMember is what a member of an object says, "" if there is none.
func stringMember(object []byte, name string) string {
	at := member(object, name)
	if at == (Span{}) || object[at.Start] != '"' {
		return ""
	}
	return string(unquoted(at.Of(object)))
}

func (c *checker) latestAssistant() (run, bool) {
	for i := len(c.runs) - 1; i >= 0; i-- {
		if c.messages[c.runs[i].start].Role == "assistant" {
			return c.runs[i], true
		}
	}
	return run{}, false
}

func (c *checker) thinkingFirst(t run) {
	called := false
	for i := t.start; i < t.end; i++ {
		for j := range c.messages[i].Parts {
			p := &c.messages[i].Parts[j]
			if called && p.Kind == Reasoning {
				c.report(i, "thinking stands behind a tool_use of the latest turn")
			}
			called = called || p.Kind == Call
		}
	}
}

// thinkingOwn is V-A8.
func (c *checker) thinkingOwn() {
	if c.Model == "" || c.Author == "" || baseModel(c.Model) == baseModel(c.Author) {
		return
	}
	c.parts(func(i int, _ *Part) { c.report(i, "thinking of %s is sent to %s", c.Author, c.Model) }, Reasoning)
}

// cacheMarks is V-A9. The head counts, for its blocks become the request's system.
func (c *checker) cacheMarks() {
	marks, most := 0, c.rule.limits["cache_control"]
	for i := range c.messages {
		for block := range c.marked(i) {
			if marks++; marks == most+1 {
				c.report(i, "this is the %dth block with cache_control", marks)
			}
			if text := member(block, "text"); string(text.Of(block)) == `""` {
				c.report(i, "an empty text has cache_control")
			}
		}
	}
}

// marked yields the blocks of a message, and those inside of results, that have cache_control.
func (c *checker) marked(message int) func(yield func([]byte) bool) {
	body := c.body(message)
	return func(yield func([]byte) bool) {
		if bytes.Contains(body, []byte("cache_control")) {
			markedBlocks(body, yield)
		}
	}
}

func markedBlocks(object []byte, yield func([]byte) bool) bool {
	content := member(object, "content")
	if content == (Span{}) || object[content.Start] != '[' {
		return true
	}
	for at := range rawjson.Elements(object, content.Start) {
		block := at.Of(object)
		if member(block, "cache_control") != (Span{}) && !yield(block) || !markedBlocks(block, yield) {
			return false
		}
	}
	return true
}
