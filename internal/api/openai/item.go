package openai

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
	"github.com/varve-dev/varve/internal/wire"
)

// item is an item of a conversation: a message of its log, or a part of one that another format made.
type item struct {
	seq  int64  // of its message
	id   string // ours; a list continues after it
	body []byte // as it is stored
}

//go:embed items.json
var kindTable []byte

// itemKinds lists the types of items whose ids have their own prefix, and whether OpenAI's API always answers them with
// a status.
var itemKinds = embeddedKinds()

type itemKind struct {
	Prefix    string `json:"prefix"`
	HasStatus bool   `json:"has_status"`
}

func embeddedKinds() (kinds map[string]itemKind) {
	if err := json.Unmarshal(kindTable, &kinds); err != nil {
		panic(fmt.Errorf("items.json: %w", err))
	}
	return kinds
}

// An item's id is a prefix, and in hexadecimal the seq of its message, its number among the items of that message, and
// a part of a hash of these and of the session: an id of another session, or a miscopied one, is not found.
const (
	itemPart  = 4
	itemCheck = itemPart + 2
	itemBytes = 16
)

func itemID(at session.Address, seq int64, part int, kind string) string {
	prefix := itemKinds[kind].Prefix
	if prefix == "" {
		prefix = "item"
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(seq))
	b = binary.BigEndian.AppendUint16(b, uint16(part))
	h := sha256.New()
	h.Write(at.Tenant[:])
	h.Write(b)
	h.Write([]byte(at.ID))
	return prefix + "_" + hex.EncodeToString(append(b, h.Sum(nil)[:itemBytes-itemCheck]...))
}

// itemPlace returns the place that one of our ids names. ok is false for any other id.
func itemPlace(at session.Address, id string) (seq int64, part int, ok bool) {
	prefix, digits := cutLast(id, "_")
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != itemBytes {
		return 0, 0, false
	}
	seq, part = int64(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint16(b[itemPart:]))
	_, mine := cutLast(itemID(at, seq, part, ""), "_")
	return seq, part, seq > 0 && prefix != "" && digits == mine
}

func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+len(separator):]
}

// itemsOf returns the items of a message: one, unless the message has another format.
func itemsOf(at session.Address, m *session.Message) []item {
	bodies := [][]byte{m.Body}
	if m.Format != session.OpenAIResponses {
		bodies = nil
		one := wire.Stored{Format: m.Format, Body: m.Body, Seq: m.Seq}
		for _, t := range wire.TranslateMessage(session.OpenAIResponses, one) {
			bodies = append(bodies, t.Body)
		}
	}
	items := make([]item, len(bodies))
	for i, body := range bodies {
		items[i] = item{seq: m.Seq, id: itemID(at, m.Seq, i, readFields(body).kind), body: body}
	}
	return items
}

// itemFields are the members of an item that answers add or change.
type itemFields struct {
	kind, role      string
	status, content rawjson.Span
	typed           bool
}

func readFields(body []byte) (f itemFields) {
	f.kind = "message"
	for key, value := range rawjson.Members(body, rawjson.Start(body)) {
		switch {
		case rawjson.KeyIs(body, key, "type"):
			f.kind, f.typed = textOf(body, value), true
		case rawjson.KeyIs(body, key, "role"):
			f.role = textOf(body, value)
		case rawjson.KeyIs(body, key, "status"):
			f.status = value
		case rawjson.KeyIs(body, key, "content"):
			f.content = value
		}
	}
	return f
}

// textOf returns the text of a string, "" for any other value.
func textOf(body []byte, value rawjson.Span) string {
	if body[value.Start] != '"' {
		return ""
	}
	text, _ := rawjson.Unquote(nil, value.Of(body))
	return string(text)
}

// shownID returns the id of an item in an answer.
func (i *item) shownID() string {
	return cmp.Or(wire.ItemID(i.body), i.id)
}

// appendItem writes an item as OpenAI's API answers it: with an id, a type and a status, and the content of a message
// as an array. Stored items may omit these, as requests may.
func appendItem(dst []byte, i *item) []byte {
	f := readFields(i.body)
	dst = append(dst, `{"id":`...)
	dst = rawjson.Quote(dst, []byte(i.shownID()))
	if !f.typed {
		dst = append(dst, `,"type":"message"`...)
	}
	for key, value := range rawjson.Members(i.body, rawjson.Start(i.body)) {
		if rawjson.KeyIs(i.body, key, "id") || rawjson.KeyIs(i.body, key, "status") && i.body[value.Start] == 'n' {
			continue
		}
		dst = append(append(append(dst, ','), key.Of(i.body)...), ':')
		if value == f.content && i.body[value.Start] == '"' && f.kind == "message" {
			dst = appendContent(dst, f.role, value.Of(i.body))
			continue
		}
		dst = append(dst, value.Of(i.body)...)
	}
	if itemKinds[f.kind].HasStatus && (f.status == rawjson.Span{} || i.body[f.status.Start] == 'n') {
		dst = append(dst, `,"status":"completed"`...)
	}
	return append(dst, '}')
}

// appendContent writes a content that is one string as an array.
func appendContent(dst []byte, role string, literal []byte) []byte {
	if role == "assistant" {
		return append(append(append(dst, `[{"type":"output_text","text":`...), literal...), `,"annotations":[]}]`...)
	}
	return append(append(append(dst, `[{"type":"input_text","text":`...), literal...), `}]`...)
}

// answerItems answers with a page of items. first_id and last_id are our ids: the parameter after names the id that the
// next page continues after.
func answerItems(req *request.Request, items []item, more bool) error {
	out := req.Buffer()
	out.B = append(out.B, `{"object":"list","data":[`...)
	size := 0
	for i := range items {
		size += len(items[i].body)
	}
	err := req.Processors().Step(req.Ctx, int64(size), func(*admit.Step) error { // they may have been appended
		for i := range items {
			if i > 0 {
				out.B = append(out.B, ',')
			}
			out.B = appendItem(out.B, &items[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	var first, last *string
	if len(items) > 0 {
		first, last = &items[0].id, &items[len(items)-1].id
	}
	out.B = view.AppendMember(append(out.B, ']'), "first_id", first)
	out.B = view.AppendMember(out.B, "last_id", last)
	out.B = view.AppendMember(out.B, "has_more", more && last != nil)
	return req.Bytes(http.StatusOK, request.JSONType, append(out.B, '}'))
}
