package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// citation is what a text is based on, as the provider that wrote the text says: a page, a file or a document.
type citation struct {
	title string
	at    string // a URL, or what a file is called at its provider
}

// cite shows what the texts of a message of another format cite: in the AI SDK by source parts, in Responses by the
// annotations of Chat Completions, which are the same, elsewhere by a note behind the last text.
func (n *Message) cite(target session.Format) {
	if n.Format == target || n.Raw == nil || !n.cites {
		return
	}
	n.nameAudio()
	if target == session.OpenAIResponses && n.annotate() {
		return
	}
	found := n.sources()
	if len(found) == 0 {
		return
	}
	n.Blocks = slices.DeleteFunc(n.Blocks, isSourcePart)
	if target == session.AISDK {
		n.addShown(sourceParts(found)...)
	} else {
		n.addShown(sourcesNote(found))
	}
}

// nameAudio names what the assistant said as a sound, which OpenAI keeps under an id.
func (n *Message) nameAudio() {
	if n.Format != session.OpenAIChat {
		return
	}
	audio := valueOf(n.extras(), "audio")
	if id := stringLiteral(audio, "id"); id != nil {
		n.addShown(Block{Kind: Text, Text: note("audio: %s", unquoted(id)), Edited: true})
	}
}

// addShown adds blocks behind the last text of the message, or at its end.
func (n *Message) addShown(blocks ...Block) {
	at := len(n.Blocks)
	for i, p := range slices.Backward(n.Blocks) {
		if p.Kind == Text {
			at = i + 1
			break
		}
	}
	n.Blocks = slices.Insert(slices.Clip(n.Blocks), at, blocks...)
	n.Edited = true
}

// sources returns what the message cites, each source once, in the order in which it does.
func (n *Message) sources() (list []citation) {
	add := func(s citation) {
		if s != (citation{}) && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	if n.Format == session.OpenAIChat {
		for annotation := range elementsOf(n.extras(), "annotations") {
			add(sourceOf(valueOf(annotation, "url_citation")))
		}
	}
	for i := range n.Blocks {
		p := &n.Blocks[i]
		switch {
		case p.Format != n.Format || p.Raw == nil:
		case isSourcePart(*p):
			add(sourceOf(p.Raw))
		case p.Kind == Text:
			p.eachCited(func(cited []byte) { add(sourceOf(cited)) })
		}
	}
	return list
}

// isSourcePart reports whether a block is a source of a UIMessage.
func isSourcePart(p Block) bool {
	return p.Kind == Opaque && p.Format == session.AISDK && !p.Edited &&
		strings.HasPrefix(stringMember(p.Raw, "type"), "source-")
}

// eachCited yields the objects that name what a text cites.
func (p *Block) eachCited(yield func(cited []byte)) {
	for cited := range elementsOf(p.Raw, "citations") {
		if of := valueOf(cited, "source"); of != nil && of[0] == '{' {
			cited = of // the AI SDK
		}
		yield(cited)
	}
	for cited := range elementsOf(valueOf(valueOf(p.Raw, "providerMetadata"), "anthropic"), "citations") {
		yield(cited)
	}
	for cited := range elementsOf(p.Raw, "annotations") {
		yield(cited)
	}
}

// sourceOf reads a citation of any provider: each has its names for a title and a place.
func sourceOf(cited []byte) (s citation) {
	for _, name := range []string{"title", "document_title", "filename"} {
		s.title = cmp.Or(s.title, stringMember(cited, name))
	}
	for _, name := range []string{"url", "source", "file_id"} {
		s.at = cmp.Or(s.at, stringMember(cited, name))
	}
	if index := valueOf(cited, "document_index"); s == (citation{}) && index != nil {
		s.title = "document " + string(index)
	}
	return s
}

// sourcesNote returns a text that names sources, as many as there is room for.
func sourcesNote(list []citation) Block {
	var b strings.Builder
	for i, s := range list {
		shown := strings.TrimSpace(s.title + " " + s.at)
		if s.title != "" && s.at != "" {
			shown = s.title + " <" + s.at + ">"
		}
		if b.Len()+len(shown) > maxShown {
			b.WriteString("; " + strconv.Itoa(len(list)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(shown)
	}
	return Block{Kind: Text, Text: note("Sources: %s", strings.TrimPrefix(b.String(), "; ")), Edited: true}
}

// sourceParts returns sources as parts of a UIMessage: pages by their URL, all else as documents.
func sourceParts(list []citation) (parts []Block) {
	for _, s := range list {
		sum := sha256.Sum256([]byte(s.title + "\x00" + s.at))
		id := `"source_` + hex.EncodeToString(sum[:8]) + `"`
		raw := with(nil, `{"type":"source-url","sourceId":`, id)
		if strings.Contains(s.at, "://") {
			raw = with(raw, `,"url":`, rawjson.Quote(nil, []byte(s.at)))
			if s.title != "" {
				raw = with(raw, `,"title":`, rawjson.Quote(nil, []byte(s.title)))
			}
		} else {
			raw = wrap(nil, `{"type":"source-document","sourceId":`, id, `,"mediaType":"application/octet-stream"`)
			raw = with(raw, `,"title":`, rawjson.Quote(nil, []byte(strings.TrimSpace(s.title+" "+s.at))))
		}
		raw = append(raw, '}')
		parts = append(parts, Block{Kind: Opaque, Format: session.AISDK, Raw: raw})
	}
	return parts
}

// annotate gives the only text of a message of Chat Completions the annotations of the message, and reports whether it
// did: they index the text.
func (n *Message) annotate() bool {
	if n.Format != session.OpenAIChat || n.Role != Assistant || n.count(Text) != 1 {
		return false
	}
	var list []byte
	for annotation := range elementsOf(n.extras(), "annotations") {
		cited := valueOf(annotation, "url_citation")
		if cited == nil || member(cited, "url") == (Span{}) || member(cited, "end_index") == (Span{}) {
			return false
		}
		list = append(separate(list, 0), `{"type":"url_citation"`...)
		list = appendMembers(list, cited, true, []string{"start_index", "end_index", "url", "title"})
		list = append(list, '}')
	}
	at := slices.IndexFunc(n.Blocks, func(p Block) bool { return p.Kind == Text })
	p := &n.Blocks[at]
	if list == nil || p.Refusal {
		return false
	}
	p.Raw = with(nil, `{"type":"output_text","text":`, p.Text)
	p.Raw = wrap(p.Raw, `,"annotations":[`, list, "]}")
	p.Format, p.Edited = session.OpenAIResponses, false
	n.Edited = true
	return true
}

// cite shows what a message cites. What it says of that beside its content in the target's own format, which no server
// takes back, becomes a note, too.
func (r *repairer) cite(n *Message) {
	if n.Format != r.target {
		n.cite(r.target)
		return
	}
	if r.target != session.OpenAIChat || n.Role != Assistant || !r.uncited {
		return
	}
	whole := Decode(n.Format, r.view[n.Origin].Body)
	if found := whole[0].sources(); len(found) > 0 {
		n.addShown(sourcesNote(found))
		r.repaired(r.provider.Codes.Members, "sources_as_note", n,
			"annotations, which the API does not take, are a note")
	}
}
