package importer

import (
	"cmp"
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// converse returns a message of Bedrock's Converse API as one of Anthropic.
func converse(d *draft, o object) ([]byte, error) {
	role := o.text("role")
	switch {
	case role == "":
		return nil, errNoRole
	case parseArray(o["content"]) == nil:
		return nil, errors.New(`"content" is no list of blocks`)
	}
	blocks := converseContent(d, o["content"])
	if blocks == nil {
		return nil, skipped(role + " without content")
	}
	return message(role, list(blocks)), nil
}

// converseContent returns the blocks of a content. A cache point is a mark on the block before it.
func converseContent(d *draft, content []byte) [][]byte {
	var blocks [][]byte
	marked := 0 // blocks before the last cache point
	for o := range objects(content) {
		if !o.has("cachePoint") {
			blocks = append(blocks, converseBlock(d, o)...)
			continue
		}
		if len(blocks) == marked {
			d.note("a cache point with nothing before it was left out")
			continue
		}
		marked = len(blocks)
		last := blocks[len(blocks)-1]
		mark := fill(`{"type":"ephemeral"%}`, member("ttl", nonEmpty(o.at("cachePoint.ttl"))))
		blocks[len(blocks)-1] = fill(`%%}`, last[:len(last)-1], member("cache_control", mark))
	}
	return blocks
}

// converseBlock returns a block in Anthropic's form, none if that format has no place for it.
func converseBlock(d *draft, o object) [][]byte {
	switch {
	case isString(o["text"]):
		return [][]byte{textBlock(o["text"])}
	case o.has("toolUse"):
		return [][]byte{toolUse(o.at("toolUse.toolUseId"), o.at("toolUse.name"), o.at("toolUse.input"))}
	case o.has("toolResult"):
		return [][]byte{converseResult(d, parseObject(o["toolResult"]))}
	case o.has("image"):
		return [][]byte{converseImage(d, parseObject(o["image"]))}
	case o.has("document"):
		return [][]byte{converseDocument(d, parseObject(o["document"]))}
	case o.has("reasoningContent.redactedContent"):
		const redacted = `{"type":"redacted_thinking","data":%}`
		return [][]byte{fill(redacted, inString(o.at("reasoningContent.redactedContent")))}
	case o.has("reasoningContent"):
		const thinking = `{"type":"thinking","thinking":%%}`
		text := inString(o.at("reasoningContent.reasoningText.text"))
		signature := nonEmpty(o.at("reasoningContent.reasoningText.signature"))
		return [][]byte{fill(thinking, text, member("signature", signature))}
	case o.has("guardContent.text.text"):
		return [][]byte{textBlock(o.at("guardContent.text.text"))}
	case o.has("guardContent.image"):
		return [][]byte{converseImage(d, parseObject(o.at("guardContent.image")))}
	case o.has("citationsContent"):
		d.leave("list of citations")
		return converseContent(d, o.at("citationsContent.content"))
	case o.has("searchResult"):
		return [][]byte{converseSearch(d, parseObject(o["searchResult"]))}
	case o.has("json"):
		return [][]byte{textBlock(inString(o["json"]))}
	}
	d.leave("block with " + memberList(o))
	return nil
}

func converseResult(d *draft, o object) []byte {
	content := list(converseContent(d, o["content"]))
	var failed []byte
	if o.text("status") == "error" {
		failed = boolean(true)
	}
	return toolResult(o["toolUseId"], content, failed)
}

func converseSearch(d *draft, o object) []byte {
	const found = `{"type":"search_result","source":%,"title":%,"content":%}`
	return fill(found, inString(o["source"]), inString(o["title"]), list(converseContent(d, o["content"])))
}

// elsewhere returns a text for an image or a document that is in S3, nil for one with its bytes.
func elsewhere(d *draft, o object, kind string) []byte {
	uri := o.at("source.s3Location.uri")
	if !has(uri) {
		return nil
	}
	d.note("the %s %s is not in the file: a text stands in its place", kind, uri)
	return textBlock(quote("[" + kind + " " + stringValue(uri) + "]"))
}

func converseBytes(o object, mediaType string) []byte {
	const data = `{"type":"base64","media_type":%,"data":%}`
	return fill(data, quote(mediaType), inString(o.at("source.bytes")))
}

func converseImage(d *draft, o object) []byte {
	if text := elsewhere(d, o, "image"); text != nil {
		return text
	}
	return fill(`{"type":"image","source":%}`, converseBytes(o, "image/"+o.text("format")))
}

// documentTypes are the media types of Converse's formats of documents.
var documentTypes = map[string]string{
	"pdf": "application/pdf", "csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown",
	"doc": "application/msword", "xls": "application/vnd.ms-excel",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

// converseDocument returns a document. Of those that are texts the bytes become the text that they are: Anthropic takes
// no others than PDF in base64.
func converseDocument(d *draft, o object) []byte {
	if text := elsewhere(d, o, "document"); text != nil {
		return text
	}
	const document = `{"type":"document","source":%%}`
	title := member("title", nonEmpty(o["name"]))
	mediaType := documentTypes[o.text("format")]
	const plain = `{"type":"text","media_type":"text/plain","data":%}`
	if isString(o.at("source.text")) {
		return fill(document, fill(plain, o.at("source.text")), title)
	}
	if blocks := converseContent(d, o.at("source.content")); blocks != nil {
		return fill(document, fill(`{"type":"content","content":%}`, list(blocks)), title)
	}
	if strings.HasPrefix(mediaType, "text/") {
		text, err := base64.StdEncoding.DecodeString(o.text("source.bytes"))
		if err == nil && len(text) > 0 && utf8.Valid(text) {
			return fill(document, fill(plain, quote(string(text))), title)
		}
	}
	mediaType = cmp.Or(mediaType, "application/octet-stream")
	if mediaType != documentTypes["pdf"] {
		d.note("a document in the format %q is kept, but Anthropic takes only PDF and texts", o.text("format"))
	}
	return fill(document, converseBytes(o, mediaType), title)
}
