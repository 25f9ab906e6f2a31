package importer

import (
	"errors"
	"fmt"
)

// A prompt that Google AI Studio saves on Drive has its turns in chunks, which become Gemini contents. A thought, a
// text, an image or a file is a chunk of its own: the chunks that follow each other in one role are one content.
//
//   - A file on Drive is not in the prompt: a text in brackets names it, and a note says so.
//   - What was typed and not sent (pendingInputs) is no part of the conversation.
var aiStudio = source{
	name:   AIStudio,
	title:  "Google AI Studio's prompts",
	detect: marked("chunkedPrompt", "0.chunkedPrompt"),
	into:   Gemini,
	read:   readAIStudio,
}

func readAIStudio(f *File, id string, data []byte) error {
	for e := range f.records(data) {
		chunks := parseArray(e.at("chunkedPrompt.chunks"))
		if chunks == nil {
			f.count(e, errors.New(`no list "chunkedPrompt.chunks"`))
			continue
		}
		d := f.newDraft(e.object)
		d.line = 1
		if prompt := geminiPrompt(e.object["systemInstruction"]); prompt != nil {
			d.add(prompt)
		} else if text := nonEmpty(e.at("systemInstruction.text")); text != nil {
			d.add(geminiPrompt(text))
		}
		p := &studioPrompt{}
		d.read = p.chunk
		d.records(f.elements(chunks))
		d.finish(id)
		for range parseArray(e.at("chunkedPrompt.pendingInputs")) {
			f.count(e, skipped("pending input"))
		}
	}
	return nil
}

// studioPrompt is a prompt being read.
type studioPrompt struct {
	last *content
	slot *slot // of the last content
}

// content is a content of Gemini that grows until another role speaks.
type content struct {
	role  string
	parts [][]byte
}

func (c *content) body() []byte { return fill(`{"role":%,"parts":%}`, quote(c.role), list(c.parts)) }

// chunk adds a chunk to the content of its role, which begins here if another role spoke before.
func (p *studioPrompt) chunk(d *draft, e entry) error {
	role := e.text("role")
	if role == "" {
		return errNoRole
	}
	parts := p.parts(d, e)
	if parts == nil {
		if e.has("errorMessage") {
			return skipped("error of the model")
		}
		return skipped(role + " without content")
	}
	if p.last == nil || p.last.role != role {
		p.last = &content{role: role}
		p.slot = d.place(p.last.body)
	}
	if p.slot.at.IsZero() {
		p.slot.at = moment(e.object["createTime"])
	}
	p.last.parts = append(p.last.parts, parts...)
	return nil
}

// studioInline are the members of a chunk that hold a file with its bytes.
var studioInline = []string{"inlineData", "inlineImage", "inlineFile", "inlineAudio", "inlineVideo"}

// studioLinks are the members of a chunk that name a file or a video elsewhere.
var studioLinks = []string{"driveDocument", "driveImage", "driveAudio", "driveVideo", "youtubeVideo"}

// studioAsItIs are the members of a chunk that are members of Gemini's parts.
var studioAsItIs = []string{"executableCode", "codeExecutionResult", "functionCall", "functionResponse", "fileData"}

// parts returns the parts of a chunk. Its text may be written twice: whole, and in pieces that have the signatures.
func (p *studioPrompt) parts(d *draft, e entry) (parts [][]byte) {
	parts = studioTexts(d, e)
	for _, name := range studioInline {
		if file := parseObject(e.object[name]); file != nil {
			const inline = `{"inlineData":{"mimeType":%,"data":%}}`
			parts = append(parts, fill(inline, inString(file["mimeType"]), inString(file["data"])))
		}
	}
	for _, name := range studioAsItIs {
		if e.has(name) {
			parts = append(parts, fill(`{%:%}`, quote(name), e.object[name]))
		}
	}
	for _, name := range studioLinks {
		if e.has(name) {
			parts = append(parts, fill(`{"text":%}`, quote(fmt.Sprintf("[%s %s]", name, e.text(name+".id")))))
			d.note("the file of a %s is not in the prompt: a text stands in its place", name)
		}
	}
	return parts
}

func studioTexts(d *draft, e entry) (parts [][]byte) {
	for o := range objects(e.object["parts"]) {
		if nonEmpty(o["text"]) == nil {
			if !o.has("text") {
				d.leave("part with " + memberList(o))
			}
			continue
		}
		signature := member("thoughtSignature", nonEmpty(o["thoughtSignature"]))
		parts = append(parts, fill(`{"text":%%%}`, o["text"], studioThought(e), signature))
	}
	if text := nonEmpty(e.object["text"]); text != nil && parts == nil {
		parts = append(parts, fill(`{"text":%%}`, text, studioThought(e)))
	}
	return parts
}

func studioThought(e entry) []byte {
	if e.is("isThought") {
		return member("thought", boolean(true))
	}
	return nil
}
