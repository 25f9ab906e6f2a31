package wire

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// Images and files are looked at: what they are by their first bytes, whether they are base64 at all, how large they
// are, and how many a request has. A provider refuses each later request for one that it does not take. Nothing but
// the ends of the base64 is read.

// medium is an image or a file that a message shows.
type medium struct {
	at    Span // its block
	kind  Kind
	fixed bool   // its place takes nothing else
	data  Span   // the base64, without the quotes and the head of a URL; zero if it is elsewhere
	url   Span   // the string literal of where it is
	found bool   // something says where it is
	bare  bool   // nothing says its type, which the API wants to know: wrong is what holds the base64
	types []Span // where its type is told: string literals, or the place in a URL
	wrong Span   // a data: URL where base64 belongs, or base64 where a URL does: the literal, or what holds it
}

// mediaFault is an image or a file that a server does not take as it is.
type mediaFault struct {
	medium
	message int
	rule    string
	is      string // its true type, if that is all that is wrong
	spelt   bool   // its base64 is written anew
	why     string
}

// mediaWords are what only messages that show something contain, for each format.
var mediaWords = map[session.Format][]string{
	session.OpenAIChat:      {"image_url", "file", "input_audio"},
	session.OpenAIResponses: {"input_image", "input_file", "input_audio", "computer_screenshot"},
	session.Anthropic:       {"image", "document"},
	session.Gemini:          {"inlineData", "inline_data", "fileData", "file_data"},
	session.AISDK:           {"file", "image", "media", "image-url", "file-url", "image-data", "file-data"},
}

// MayShow reports whether something shows an image or a file, without a look at its JSON.
func MayShow(f session.Format, joined []byte) bool { return rawjson.HasAny(joined, mediaWords[f]) }

// mediaIn returns what a message shows.
func mediaIn(f session.Format, body []byte) []medium {
	if !MayShow(f, body) {
		return nil
	}
	s := scanner{body: body, ir: &collector{format: f, list: make([]Message, 1)}}
	if _, err := s.read(f); err != nil {
		return nil
	}
	return s.lookedAt()
}

// show notes an image or a file.
func (s *scanner) show(kind Kind, raw Span) {
	if raw.Start != rawjson.Start(s.body) && s.is(raw, '{') {
		fixed := s.inside && s.format == session.Gemini || isType(raw.Of(s.body), "computer_screenshot")
		s.shown = append(s.shown, medium{at: raw, kind: kind, fixed: fixed})
	}
}

// lookedAt returns what the message shows.
func (s *scanner) lookedAt() []medium {
	for i := range s.shown {
		s.shown[i].read(s.body, s.shown[i].at)
	}
	return s.shown
}

// mediaOfMessage is how many images and files a message may show for FastValidators to count it.
const mediaOfMessage = 4

// showsFaults reports whether a server may not take something that the message shows, or something beside much else.
func (s *scanner) showsFaults(server *provider.Media) bool {
	list := s.lookedAt()
	return len(list) > mediaOfMessage || slices.ContainsFunc(list, func(m medium) bool {
		_, why := m.fault(s.body, server)
		return why != "" || m.tooLarge(s.body, server) != "" || m.isMisspelt(s.format, s.body) ||
			server.ManySide > 0 && m.side(s.body) > server.ManySide ||
			server.Pages && m.pages(s.body)*mediaOfMessage*mostShown > server.Images
	})
}

// The members of a block that say what it shows, that hold the bytes or say where they are, and that hold these two.
var (
	typeMembers  = []string{"media_type", "mimeType", "mime_type", "mediaType"}
	dataMembers  = []string{"data", "image"}
	urlMembers   = []string{"url", "image_url", "fileUri", "file_uri"}
	otherMembers = []string{"type", "detail", "filename", "title", "context", "displayName", "name", "format"}
	mediaHolders = []string{
		"source", "image_url", "file", "inlineData", "inline_data", "fileData", "file_data", "input_audio", "data",
	}
)

func (m *medium) read(body []byte, at Span) {
	if isType(at.Of(body), "text") || isType(at.Of(body), "content") {
		m.found = true // a document that is a text
		return
	}
	for key, value := range rawjson.Members(body, at.Start) {
		is := func(name string) bool { return rawjson.KeyIs(body, key, name) }
		switch {
		case body[value.Start] == '{' && slices.ContainsFunc(mediaHolders, is):
			m.found = m.found || !is("source") && !is("image_url")
			m.read(body, value)
			untyped := len(m.types) == 0 && m.data != (Span{}) && m.url == (Span{})
			switch {
			case untyped && is("source"):
				m.bare, m.wrong = true, value
			case untyped && (is("inlineData") || is("inline_data")):
				m.bare, m.wrong = true, Span{Start: key.Start, End: value.End}
			case m.url == (Span{}) || m.data == (Span{}):
			case is("source"):
				m.wrong = value
			case is("fileData"), is("file_data"):
				m.wrong = Span{Start: key.Start, End: value.End}
			}
		case body[value.Start] != '"' || slices.ContainsFunc(otherMembers, is):
			m.found = m.found || body[value.Start] == '{' && !is("cache_control") && !is("citations")
		case slices.ContainsFunc(typeMembers, is):
			m.types = append(m.types, value)
		case slices.ContainsFunc(urlMembers, is):
			m.url, m.found = value, true
			m.readData(body, value, false)
			if m.data == (Span{}) && isBare(body, inside(value)) {
				m.data, m.wrong = inside(value), value
			}
		case is("file_data"): // which takes no URL that leads elsewhere
			m.data, m.found = inside(value), true
			m.readData(body, value, false)
			if isBare(body, m.data) && m.data == inside(value) {
				m.url, m.wrong = value, value
			}
		case is("data") && at != m.at: // a source takes nothing but base64
			m.found = true
			m.data = inside(value)
			if bytes.HasPrefix(m.data.Of(body), []byte("data:")) {
				m.readData(body, value, false)
				m.wrong = value
			}
		case slices.ContainsFunc(dataMembers, is):
			m.found = true
			m.readData(body, value, true)
		default: // an id
			m.found = true
		}
	}
}

// declared returns the types that the message tells.
func (m *medium) declared(body []byte) (list []string) {
	for _, at := range m.types {
		text := bytes.ReplaceAll(bytes.Trim(at.Of(body), `"`), []byte(`\/`), []byte("/"))
		list = append(list, strings.ToLower(string(text)))
	}
	return list
}

// readData reads a URL that holds base64 or leads elsewhere, or plain base64.
func (m *medium) readData(body []byte, literal Span, plain bool) {
	const longestHead = 256
	at := inside(literal)
	head := at.Of(body)[:min(at.End-at.Start, longestHead)]
	if rest, ok := bytes.CutPrefix(head, []byte("data:")); ok {
		comma := bytes.IndexByte(rest, ',')
		before, isBase64 := bytes.CutSuffix(rest[:max(comma, 0)], []byte(";base64"))
		if !isBase64 {
			m.data = at
			return
		}
		kind, _, _ := bytes.Cut(before, []byte(";"))
		start := at.Start + len("data:")
		m.data = Span{Start: start + comma + 1, End: at.End}
		m.types = append(m.types, Span{Start: start, End: start + len(kind)})
		return
	}
	if plain && !bytes.Contains(head, []byte(":")) {
		m.data = at
	}
}

// inside returns a string literal without its quotes.
func inside(literal Span) Span { return Span{Start: literal.Start + 1, End: literal.End - 1} }

// isBare reports whether a text is the base64 of an image or a PDF, without the head of a URL.
func isBare(body []byte, at Span) bool {
	text := medium{data: at}
	head, ok := firstBytes(bytes.TrimRight(text.encoded(body), "="))
	return ok && typeOf(head) != ""
}

// fault returns what a server does not take: bytes that are none, no base64, not what they are said to be, or of a type
// that it does not show. is is their true type if it is of the same kind.
func (m *medium) fault(body []byte, server *provider.Media) (is, why string) {
	switch {
	case m.data == (Span{}):
		return "", m.nowhere(body, server)
	case server.FileURLs && bytes.HasPrefix(m.data.Of(body), []byte("http")):
		return "", ""
	}
	encoded := bytes.TrimRight(m.base64(body), "=")
	if len(encoded) == 0 {
		return "", "it is empty"
	}
	head, ok := firstBytes(encoded)
	if !ok || len(encoded)%4 == 1 {
		return "", "it is not base64"
	}
	is = typeOf(head)
	for i, said := range m.declared(body) {
		why = m.mistyped(is, said, m.types[i].Of(body))
		switch {
		case why != "" && strings.HasPrefix(is, "image/") && !server.Retypes(is):
			return "", "the API takes no " + is
		case why != "":
			return is, why
		case said != is && !sameType(said, is) && isChecked(said):
			return "", "its bytes are not " + said
		}
	}
	why = m.untaken(body, is, server)
	if told := strings.Join(m.declared(body), ""); is == "" && told == "" && len(m.types) > 0 {
		why = "nothing says what it is"
	}
	switch {
	case why != "" && is != "" && server.Shows(is):
		return is, why
	case why != "":
		return "", why
	case m.wrong == (Span{}):
		return "", ""
	}
	switch {
	case m.bare && strings.HasPrefix(is, "image/") && !server.Retypes(is):
		return "", "the API takes no " + is
	case m.bare && is == "":
		return "", "nothing says what it is"
	case m.bare:
		return is, "nothing says that it is " + is
	}
	if said := append(m.declared(body), ""); is == "" {
		is = said[0]
	}
	if (m.kind == Image) != strings.HasPrefix(is, "image/") {
		return "", "its bytes are no " + m.kind.String()
	}
	return is, "it is a data: URL where the API takes base64, or base64 where it takes a URL"
}

// untaken returns why a server does not take the type of an image, "" if it does: because it shows no such images, or
// because the type has another name. is is what the bytes say, "" if they say nothing.
func (m *medium) untaken(body []byte, is string, server *provider.Media) string {
	said := m.declared(body)
	if is != "" {
		said = append(said, is)
	}
	for _, kind := range said {
		if m.kind == Image && strings.HasPrefix(kind, "image/") && kind != "image/*" && !server.Shows(kind) {
			return "the API takes no " + kind
		}
	}
	return ""
}

// nowhere returns why a server cannot find what is not in the message, "" if it may.
func (m *medium) nowhere(body []byte, server *provider.Media) string {
	place := ""
	if m.url != (Span{}) {
		place = string(unquoted(m.url.Of(body)))
	}
	text := strings.ToLower(place)
	switch {
	case !m.found, m.url != (Span{}) && strings.TrimSpace(text) == "":
		return "it is empty"
	case strings.HasPrefix(text, "file:"), strings.HasPrefix(text, "blob:"):
		return "it is on another machine"
	case m.url != (Span{}) && server.Inside:
		return "the API takes none that is elsewhere"
	case m.url != (Span{}) && !isURL(text, server):
		return "its place is no URL: " + shownID(place)
	}
	return ""
}

// isURL reports whether a text may say where something is.
func isURL(text string, server *provider.Media) bool {
	name := !strings.Contains(text, ":") && !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, ".")
	return strings.Contains(text, "://") || name && server.Names
}

// tooLarge returns why a server does not take an image by itself, "" if it does.
func (m *medium) tooLarge(body []byte, server *provider.Media) string {
	if m.kind != Image || m.data == (Span{}) {
		return ""
	}
	if size := m.size(body); server.ImageBytes > 0 && size > server.ImageBytes {
		return fmt.Sprintf("it has %d bytes in base64, and the API takes %d", size, server.ImageBytes)
	}
	if side := m.side(body); server.Side > 0 && side > server.Side {
		return fmt.Sprintf("it has %d pixels on a side, and the API takes %d", side, server.Side)
	}
	return ""
}

func (m *medium) side(body []byte) int {
	size := tokens.Measure(m.encoded(body))
	return max(size.Width, size.Height)
}

// size returns how many bytes of the message it takes, 0 for what is elsewhere.
func (m *medium) size([]byte) int { return m.data.End - m.data.Start }

// pages returns how many pages a PDF has, 0 for anything else.
func (m *medium) pages(body []byte) int {
	if m.kind != File || m.data == (Span{}) {
		return 0
	}
	return tokens.Pages(m.encoded(body))
}

// mediaJudge finds what a server does not take of the images and files in a view.
type mediaJudge struct {
	server *provider.Media
	view   []Stored
	shown  [][]medium // by message
	faults []mediaFault
	looked int // the first of the faults, which are of media by themselves
}

// mediaFaults returns what a server does not take of the images and files in a view. Of too many, or too many bytes,
// the newest are kept. Its only error is that of a context that has ended.
func mediaFaults(
	ctx context.Context, view []Stored, server *provider.Facts, model string,
) ([]mediaFault, error) {
	j := mediaJudge{server: &server.Media, view: view, shown: make([][]medium, len(view))}
	bytes := 0
	for i := range view {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		bytes += len(view[i].Body)
		j.look(i)
	}
	limit := j.server.MaxImages(model)
	j.looked = len(j.faults)
	j.limitImages(limit)
	if j.server.Pages {
		why := fmt.Sprintf("the API takes %d pages, and there are newer ones", limit)
		j.leaveOver(j.sum((*medium).pages)-limit, why, (*medium).pages)
	}
	if limit := j.server.MaxBytes(); limit > 0 && bytes > limit {
		why := fmt.Sprintf("a request has at most %d bytes, and there are newer ones", j.server.Request)
		j.leaveOver(bytes-limit, why, (*medium).size)
	}
	return j.faults, nil
}

// look finds what is wrong with the images and files of message i by themselves. The others are left in shown.
func (j *mediaJudge) look(i int) {
	body := j.view[i].Body
	for _, m := range mediaIn(j.view[i].Format, body) {
		is, why := m.fault(body, j.server)
		if large := m.tooLarge(body, j.server); large != "" {
			is, why = "", large
		}
		f := mediaFault{medium: m, message: i, rule: "V-T2", is: is, why: why}
		if f.spelt = (why == "" || is != "") && m.isMisspelt(j.view[i].Format, body); f.spelt && why == "" {
			f.why = "its base64 has another alphabet, line breaks or wrong padding"
		}
		if f.why != "" {
			j.faults = append(j.faults, f)
		}
		if why == "" || is != "" {
			j.shown[i] = append(j.shown[i], m)
		}
	}
}

// leave leaves out the oldest media of those for which wants is true, until it was told n of them.
func (j *mediaJudge) leave(n int, why string, wants func(body []byte, m *medium) bool) (left int) {
	for i := 0; i < len(j.shown) && left < n; i++ {
		j.shown[i] = slices.DeleteFunc(j.shown[i], func(m medium) bool {
			if left >= n || !wants(j.view[i].Body, &m) {
				return false
			}
			left++
			isOf := func(f mediaFault) bool { return f.message == i && f.at == m.at }
			if own := slices.IndexFunc(j.faults[:j.looked], isOf); own >= 0 {
				j.faults = slices.Delete(j.faults, own, own+1)
				j.looked--
			}
			j.faults = append(j.faults, mediaFault{medium: m, message: i, rule: "V-T3", why: why})
			return true
		})
	}
	return left
}

func (j *mediaJudge) limitImages(limit int) {
	n := 0
	for _, list := range j.shown {
		for i := range list {
			if list[i].kind == Image {
				n++
			}
		}
	}
	if limit > 0 {
		n -= j.leave(n-limit, fmt.Sprintf("the API takes %d images, and there are newer ones", limit),
			func(_ []byte, m *medium) bool { return m.kind == Image })
	}
	if limit := j.server.Many; limit > 0 && n > limit {
		j.leave(n-limit, fmt.Sprintf("among more than %d images, the API takes none with more than %d pixels on a side",
			limit, j.server.ManySide), func(body []byte, m *medium) bool {
			return m.kind == Image && m.data != (Span{}) && m.side(body) > j.server.ManySide
		})
	}
}

func (j *mediaJudge) sum(of func(m *medium, body []byte) int) (n int) {
	for i, list := range j.shown {
		for k := range list {
			n += of(&list[k], j.view[i].Body)
		}
	}
	return n
}

// leaveOver leaves out the oldest media until they have over less of something.
func (j *mediaJudge) leaveOver(over int, why string, of func(m *medium, body []byte) int) {
	j.leave(math.MaxInt, why, func(body []byte, m *medium) bool {
		n := 0
		if over > 0 {
			n = of(m, body)
		}
		over -= n
		return n > 0
	})
}
