package importer

import (
	"encoding/json"
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// document returns the source that is a format: a list of messages, a request, a request with its response, or a
// response, in one JSON value.
func document(name Source, title string) source {
	return source{
		name:   name,
		title:  title,
		detect: func(s sample) bool { return !s.line && s.format == session.Format(name) },
		into:   name,
		read:   readDocument,
		record: documentMessage,
	}
}

// readDocument reads one JSON value as messages of the source. Each message is an element of its array, byte for byte.
func readDocument(f *File, id string, data []byte) error {
	format := session.Format(f.kind.into)
	if !json.Valid(data) {
		return &UnsupportedError{Found: "not JSON"}
	}
	t, ok := parseTranscript(format, data)
	if !ok {
		return fmt.Errorf(
			"the file is no list of messages: a JSON array, or an object with an array %q, is needed",
			shapes[format].messages,
		)
	}
	d := f.newDraft(nil)
	if t.system != nil {
		d.line = 1
		d.add(t.system)
	}
	d.records(f.elements(append(t.messages, t.reply...)))
	d.finish(id)
	if len(f.Conversations) == 0 { // a list without messages is a conversation all the same
		f.Conversations = []Conversation{{ID: id, Format: format}}
	}
	return nil
}

// documentMessage adds an element. Responses items and Gemini contents may have no role.
func documentMessage(d *draft, e entry) error {
	into := d.file.kind.into
	if into == OpenAIResponses && e.has("type") || into == Gemini && e.has("parts") {
		d.add(e.raw)
		return nil
	}
	return asItIs(d, e)
}
