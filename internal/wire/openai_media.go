package wire

import "bytes"

// soundFormats are the names that OpenAI has for the media types of the sounds that it takes.
var soundFormats = map[string]string{
	`"audio/wav"`: "wav", `"audio/x-wav"`: "wav", `"audio/mpeg"`: "mp3", `"audio/mp3"`: "mp3",
}

// chatShows reports whether a message of the user can show an image or a file.
func chatShows(p *Block) bool {
	m := &p.Media
	switch p.Kind {
	case Image:
		return m.Data != nil || m.URL != nil
	case File:
		return m.Data != nil && (!bytes.HasPrefix(m.Type, []byte(`"audio/`)) || soundFormats[string(m.Type)] != "") ||
			m.ID != nil && fromOpenAI(p.Format)
	}
	return false
}

// appendImageName appends the name of an image, which its block has no member for, as a block of text of a type.
func appendImageName(dst []byte, blockType string, p *Block) []byte {
	if p.Kind != Image || p.Media.Name == nil {
		return dst
	}
	dst = wrap(dst, `{"type":"`, blockType, `","text":`)
	return wrap(dst, "", note("image %s", unquoted(p.Media.Name)), "},")
}

func appendChatMedia(dst []byte, p *Block) []byte {
	m := &p.Media
	dst = appendImageName(dst, "text", p)
	if format := soundFormats[string(m.Type)]; p.Kind == File && m.Data != nil && format != "" {
		dst = with(dst, `{"type":"input_audio","input_audio":{"data":`, m.Data)
		return wrap(dst, `,"format":"`, format, `"}}`)
	}
	if p.Kind == Image {
		dst = appendURL(append(dst, `{"type":"image_url","image_url":{"url":`...), p)
		if m.Detail != nil && string(m.Detail) != `"original"` { // which only Responses knows
			dst = with(dst, `,"detail":`, m.Detail)
		}
		return append(dst, "}}"...)
	}
	dst = with(dst, `{"type":"file","file":{"filename":`, fileName(m))
	if m.Data == nil {
		return wrap(dst, `,"file_id":`, m.ID, "}}")
	}
	return append(appendURL(append(dst, `,"file_data":`...), p), "}}"...)
}

// fileName returns a file's name, which the provider wants with its data.
func fileName(m *Media) []byte {
	if m.Name == nil {
		return []byte(`"file"`)
	}
	return m.Name
}

// responsesShow reports whether an image or a file can be shown. There is no block for sounds.
func responsesShow(p *Block) bool {
	m := &p.Media
	known := m.Data != nil || m.URL != nil || m.ID != nil && fromOpenAI(p.Format)
	switch p.Kind {
	case Image:
		return known
	case File:
		return known && !bytes.HasPrefix(m.Type, []byte(`"audio/`))
	}
	return false
}

func appendResponsesMedia(dst []byte, p *Block) []byte {
	m := &p.Media
	byID := m.Data == nil && m.URL == nil
	dst = appendImageName(dst, "input_text", p)
	switch {
	case p.Kind == Image && byID:
		dst = with(dst, `{"type":"input_image","file_id":`, m.ID)
	case p.Kind == Image:
		dst = appendURL(append(dst, `{"type":"input_image","image_url":`...), p)
	case byID:
		dst = with(dst, `{"type":"input_file","file_id":`, m.ID)
	case m.Data == nil:
		dst = with(dst, `{"type":"input_file","file_url":`, m.URL)
	default:
		dst = appendURL(append(dst, `{"type":"input_file","file_data":`...), p)
	}
	switch {
	case p.Kind == Image && m.Detail != nil:
		dst = with(dst, `,"detail":`, m.Detail)
	case p.Kind == File && (m.Name != nil || m.Data != nil):
		dst = with(dst, `,"filename":`, fileName(m))
	}
	return append(dst, '}')
}
