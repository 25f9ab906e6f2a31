package wire

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// mendMedia gives images and files of the view their true types, and makes texts with a ref of those that the server
// does not take.
func (r *repairer) mendMedia(ctx context.Context) error {
	faults, err := mediaFaults(ctx, r.view, r.provider, r.Model)
	if len(faults) == 0 {
		return err
	}
	view, shown := slices.Clone(r.view), r.shows
	edits := make([][]Edit, len(view))
	for i := range faults {
		f := &faults[i]
		m := &view[f.message]
		edits[f.message] = append(edits[f.message], f.edits(m, r.target)...)
		r.repairs = append(r.repairs, Repair{Rule: f.rule, Kind: f.repair(), Seq: m.Seq, Detail: f.detail()})
		if f.rule == "V-T3" { // it was there until newer ones came
			r.late = append(r.late, Seqs{After: m.Seq, Through: shown})
		}
	}
	for i, list := range edits {
		if len(list) > 0 {
			view[i].Body, view[i].Flags = Replace(nil, view[i].Body, list), 0
		}
	}
	r.view = view
	return nil
}

func (f *mediaFault) repair() string {
	if f.isNote() {
		return "media_as_note"
	}
	return "media_retyped"
}

// isNote reports whether a text takes its place.
func (f *mediaFault) isNote() bool { return f.is == "" && !f.spelt }

func (f *mediaFault) detail() string { return f.kind.String() + ": " + f.why }

// edits returns the edits of a message that mend a fault.
func (f *mediaFault) edits(m *Stored, target session.Format) (list []Edit) {
	if f.isNote() {
		text := f.kind.String()
		if said := f.declared(m.Body); len(said) > 0 && said[0] != "" {
			text += " " + said[0]
		}
		text += ": " + f.why
		if m.Seq > 0 {
			text += ": read_result " + session.MessagesRef{First: m.Seq, Last: m.Seq}.String()
		}
		return f.noteEdits(m, target, note("%s", text))
	}
	data := f.data.Of(m.Body)
	if f.spelt {
		data = f.base64(m.Body)
		list = append(list, Edit{Span: f.data, With: data})
	}
	switch {
	case f.wrong == (Span{}):
	case m.Format == session.Gemini && (f.url != (Span{}) || f.bare): // the member that holds it, or says where it is
		return []Edit{{Span: f.wrong, With: fmt.Appendf(nil, `"inlineData":{"mimeType":%q,"data":"%s"}`,
			f.is, data)}}
	case f.wrong == f.url:
		head := fmt.Appendf(nil, "data:%s;base64,", f.is)
		list = []Edit{{Span: f.data, With: append(head, data...)}}
	case m.Body[f.wrong.Start] == '"':
		list = append(list, Edit{Span: Span{Start: f.wrong.Start + 1, End: f.data.Start}})
	default:
		return []Edit{{Span: f.wrong, With: fmt.Appendf(nil, `{"type":"base64","media_type":%q,"data":"%s"}`,
			f.is, data)}}
	}
	for _, at := range f.types {
		if f.is == "" || f.wrong.Start <= at.Start && at.End <= f.wrong.End { // it goes with the head of the URL
			continue
		}
		is := []byte(f.is)
		if m.Body[at.Start] == '"' {
			is = rawjson.Quote(nil, is)
		}
		list = append(list, Edit{Span: at, With: is})
	}
	return list
}

// noteEdits puts a note in the place of what is shown. Where the format takes nothing but a file, the note is one: a
// response of Gemini's may have texts. A screenshot's output becomes that of a function.
func (f *mediaFault) noteEdits(m *Stored, target session.Format, literal []byte) []Edit {
	switch {
	case !f.fixed || m.Format != target:
	case m.Format == session.Gemini:
		text := base64.StdEncoding.EncodeToString(unquoted(literal))
		return []Edit{{Span: f.at, With: []byte(`{"inlineData":{"mimeType":"text/plain","data":"` + text + `"}}`)}}
	default:
		return []Edit{
			{Span: member(m.Body, "type"), With: []byte(`"function_call_output"`)}, {Span: f.at, With: literal},
		}
	}
	return []Edit{{Span: f.at, With: textBlock(m.Format, literal)}}
}

// textBlock returns the block of a user's text, or of a text in a result.
func textBlock(f session.Format, literal []byte) []byte {
	switch f {
	case session.Gemini:
		return wrap(nil, `{"text":`, literal, "}")
	case session.OpenAIResponses:
		return wrap(nil, `{"type":"input_text","text":`, literal, "}")
	}
	return wrap(nil, `{"type":"text","text":`, literal, "}")
}

// mediaTaken checks V-T2 and V-T3.
func (c *checker) mediaTaken() {
	for i := range c.faults() {
		if f := &c.media[i]; f.rule == c.rule.Code {
			c.report(f.message, "%s", f.why)
		}
	}
}

// faults looks at the images and files, once for all rules.
func (c *conversation) faults() []mediaFault {
	if c.looked {
		return c.media
	}
	c.looked = true
	view := make([]Stored, len(c.bodies))
	for i, body := range c.bodies {
		view[i] = Stored{Format: c.format, Body: body}
	}
	c.media, _ = mediaFaults(context.Background(), view, c.server, c.Model) // which never ends
	return c.media
}
