package importer

import (
	"bytes"
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

// readDocument reads one JSON value, or lines that are a message each, as messages of the source, byte for byte.
func readDocument(f *File, id string, data []byte) error {
	d := f.newDraft(nil)
	if !json.Valid(data) {
		d.records(f.linesOf(data))
		if f.Report.Imported == 0 {
			return noMessageOnLines(data)
		}
	} else if err := d.document(data); err != nil {
		return err
	}
	d.finish(id)
	if len(f.Conversations) == 0 { // a list without messages is a conversation all the same
		f.Conversations = []Conversation{{ID: id, Format: session.Format(f.kind.into)}}
	}
	return nil
}

// document reads the records of one value.
func (d *draft) document(data []byte) error {
	format := session.Format(d.file.kind.into)
	t, ok := parseTranscript(format, data)
	if !ok && isMessage(parseObject(data)) {
		t.messages, ok = [][]byte{bytes.TrimSpace(data)}, true
	}
	if !ok {
		return fmt.Errorf(
			"the file is no list of messages: it must be a JSON array, an object with an array %q, or a message on "+
				"each line", shapes[format].messages,
		)
	}
	d.file.choices(data)
	if t.system != nil {
		d.line = 1
		d.add(t.system)
	}
	d.records(d.file.elements(append(t.messages, t.reply...)))
	return nil
}

// noMessageOnLines returns the error of lines of which none is a message.
func noMessageOnLines(data []byte) error {
	for _, line := range lines(data) {
		if found, err := values(line); err == nil {
			s := newSample(found[0], true)
			return &UnsupportedError{Found: "a file of JSON lines without a message", Missing: missing(s)}
		}
	}
	return notJSON(data)
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
