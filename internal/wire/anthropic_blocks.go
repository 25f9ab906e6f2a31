package wire

import (
	"bytes"
	"slices"
)

// What Anthropic requires of blocks besides their members: the input of a call is an object, and images and documents
// are where it shows them.

// fitBlocks changes blocks that Anthropic refuses as they are.
func (r *repairer) fitBlocks(n *Message) {
	for i := range n.Blocks {
		switch p := &n.Blocks[i]; p.Kind {
		case Call:
			r.fitInput(n, p)
		case Result:
			r.fitResult(n, p)
		case Image, File, Opaque:
			r.fitMedia(n, p)
		}
	}
}

func (r *repairer) fitInput(n *Message, p *Block) {
	if !p.loose || !r.own(p) {
		return
	}
	p.Value = appendInput(nil, p.Value)
	p.Raw = setMember(p.Raw, "input", p.Value)
	n.Edited = true
	r.repaired("V-A17", "input_as_object", n, "the input of call %q is an object", p.CallID)
}

// fitMedia makes an image or a document a text where the API shows none.
func (r *repairer) fitMedia(n *Message, p *Block) {
	if !r.own(p) || p.Raw[0] != '{' {
		return
	}
	switch mediaFit(p.Raw, n.Role == Assistant) {
	case shown:
	case misnamed:
		p.Raw, n.Edited = renamedMedia(p.Raw), true
		r.repaired("V-A18", "part_mended", n, "the API knows image/jpg as image/jpeg")
	default:
		n.makeText(p, substitute(p))
		r.repaired("V-A18", "media_as_note", n, "the API does not show this image or document: it is a text")
	}
}

// fit says whether Anthropic shows an image or a document.
type fit uint8

const (
	shown    fit = iota
	misnamed     // its media type has a name that the API does not know
	hidden
)

// mediaFit returns how a block is shown: an image or a document not at all where nowhere is true, one in the message if
// it is of a known type, and any other block always.
func mediaFit(block []byte, nowhere bool) fit {
	image := isType(block, "image")
	source := valueOf(block, "source")
	media := stringMember(source, "media_type")
	switch {
	case !image && !isType(block, "document"):
		return shown
	case nowhere:
		return hidden
	case !isType(source, "base64"):
		return shown
	case image && media == "image/jpg":
		return misnamed
	case !slices.Contains(anthropicTypes(image), media):
		return hidden
	}
	return shown
}

// renamedMedia returns an image of type image/jpg as one of type image/jpeg.
func renamedMedia(image []byte) []byte {
	source := setMember(valueOf(image, "source"), "media_type", []byte(`"image/jpeg"`))
	return setMember(image, "source", source)
}

// fitResult makes texts of what a result must not show, and leaves its empty texts out. A result of another format
// that failed has no images either: there the encoder writes its content.
func (r *repairer) fitResult(n *Message, p *Block) {
	if p.Edited || !slices.ContainsFunc(p.Content, func(c Block) bool { return r.resultRule(p, &c) != "" }) {
		return
	}
	own := r.own(p)
	var kept []Block
	content := []byte{'['}
	for i := range p.Content {
		c := p.Content[i]
		rule := r.resultRule(p, &c)
		switch {
		case rule == "V-A19":
			r.told(own, rule, "empty_text", n, "an empty text in a result is left out")
			continue
		case rule != "" && !p.IsError && mediaFit(c.Raw, false) == misnamed:
			r.told(own, rule, "part_mended", n, "the API knows image/jpg as image/jpeg")
			c.Raw = renamedMedia(c.Raw)
		case rule != "":
			r.told(own, rule, "media_as_note", n, "the API does not show this in the result: it is a text")
			c = Block{Kind: Text, Text: substitute(&c), Edited: true}
		}
		kept = append(kept, c)
		content = r.appendInner(content, &c)
	}
	p.Content, n.Edited = kept, true
	if !own {
		p.Edited = true
		return
	}
	p.Raw = setMember(p.Raw, "content", append(content, ']'))
}

// told lists a repair of a message in the target's own format: how others are written is no repair.
func (r *repairer) told(own bool, rule, kind string, n *Message, detail string) {
	if own {
		r.repaired(rule, kind, n, "%s", detail)
	}
}

func (r *repairer) appendInner(content []byte, c *Block) []byte {
	if r.own(c) {
		return append(separate(content, 1), c.Raw...)
	}
	return wrap(separate(content, 1), `{"type":"text","text":`, c.Text, "}")
}

// resultRule returns the rule that the content of a result breaks, "" for none. If the tool failed, all of it must be
// text.
func (r *repairer) resultRule(p, c *Block) string {
	own := r.own(c)
	switch {
	case own && c.Kind == Text && string(c.Text) == `""`:
		return "V-A19"
	case c.Kind == Text:
	case p.IsError && (own || c.Kind == Image || c.Kind == File):
		return "V-A18"
	case own && c.Raw[0] == '{' && mediaFit(c.Raw, false) != shown:
		return "V-A18"
	}
	return ""
}

// inputsAreObjects checks V-A17.
func (c *checker) inputsAreObjects() {
	for i, p := range c.parts(Call) {
		if !bytes.HasPrefix(p.Value.Of(c.bodies[i]), []byte{'{'}) || p.Value == (Span{}) {
			c.report(i, "the input of call %q is no object", p.CallID)
		}
	}
}

// mediaShown checks V-A18.
func (c *checker) mediaShown() {
	for i, p := range c.parts(Image, File, Opaque) {
		if kind := stringMember(c.raw(i, p), "type"); kind == "image" || kind == "document" {
			c.holdMedia(i, c.raw(i, p), c.messages[i].Role == "assistant")
		}
	}
	for i, p := range c.parts(Result) {
		for inner := range elementsOf(c.raw(i, p), "content") {
			c.holdMedia(i, inner, p.IsError)
		}
	}
}

// holdMedia reports a block that is an image of a type that the API does not know, or no text where nothing else is
// shown.
func (c *checker) holdMedia(message int, block []byte, onlyTexts bool) {
	source := valueOf(block, "source")
	media := stringMember(source, "media_type")
	switch {
	case onlyTexts && !isType(block, "text"):
		c.report(message, "a block of type %q is where the API takes texts alone", stringMember(block, "type"))
	case isType(block, "image") && isType(source, "base64") && !c.knows(media):
		c.report(message, "the type of the image is %q", media)
	case isType(block, "document") && isType(source, "base64") && media != pdfType:
		c.report(message, "the type of the document is %q", media)
	}
}

// resultTexts checks V-A19.
func (c *checker) resultTexts() {
	for i, p := range c.parts(Result) {
		for inner := range elementsOf(c.raw(i, p), "content") {
			if isType(inner, "text") && string(valueOf(inner, "text")) == `""` {
				c.report(i, "a text in the result %q is empty", p.CallID)
			}
		}
	}
}
