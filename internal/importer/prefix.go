package importer

import (
	"crypto/sha256"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// digests returns, for each message, the digest of the messages from the first to it.
func digests(format session.Format, messages [][]byte) [][32]byte {
	list := make([][32]byte, len(messages))
	sum := sha256.Sum256([]byte(format))
	for i, body := range messages {
		sum = sha256.Sum256(appendPlain(sum[:], body))
		list[i] = sum
	}
	return list
}

// appendPlain appends a JSON value without cache marks, and without the array that a mark needs around a text.
func appendPlain(dst, raw []byte) []byte {
	switch {
	case len(raw) > 0 && raw[0] == '{':
		dst = append(dst, '{')
		for key, value := range rawjson.Members(raw, 0) {
			if !rawjson.KeyIs(raw, key, "cache_control") {
				dst = append(append(dst, key.Of(raw)...), ':')
				dst = append(appendPlain(dst, value.Of(raw)), ',')
			}
		}
		return append(dst, '}')
	case len(raw) > 0 && raw[0] == '[':
		elements := parseArray(raw)
		if text := onlyText(elements); text != nil {
			return append(dst, text...)
		}
		dst = append(dst, '[')
		for _, element := range elements {
			dst = append(appendPlain(dst, element), ',')
		}
		return append(dst, ']')
	}
	return append(dst, raw...)
}

// onlyText returns the text of a content that is one text block, nil for any other.
func onlyText(blocks [][]byte) []byte {
	if len(blocks) != 1 {
		return nil
	}
	o := parseObject(blocks[0])
	for name := range o {
		if name != "type" && name != "text" && name != "cache_control" {
			return nil
		}
	}
	if o.text("type") != "text" || !isString(o["text"]) {
		return nil
	}
	return o["text"]
}
