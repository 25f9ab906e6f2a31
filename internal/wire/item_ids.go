package wire

import (
	"regexp"

	"github.com/varve-dev/varve/internal/rawjson"
)

// keepsID are the types of OpenAI's items whose id answers keep, because the provider looks it up, has signed it with
// the content, or another item refers to it. All other items get our ids: the ids that clients send need not be unique,
// some send one constant for all.
var keepsID = map[string]bool{
	"reasoning": true, "compaction": true, "image_generation_call": true, "mcp_approval_request": true,
	"program": true, "program_output": true, "item_reference": true,
}

// providersID matches an id that a provider made, not a constant such as FAKE_ID. An index can hold no id that is much
// longer.
var providersID = regexp.MustCompile(`^[a-z]+_[A-Za-z0-9_-]{1,255}$`)

// ItemID returns the provider's id that answers keep of an item in OpenAI's Responses format, "" for none.
func ItemID(item []byte) string {
	var kind, id string
	for key, value := range rawjson.Members(item, rawjson.Start(item)) {
		switch {
		case rawjson.KeyIs(item, key, "type"):
			kind = textAt(item, value)
		case rawjson.KeyIs(item, key, "id"):
			id = textAt(item, value)
		}
	}
	if keepsID[kind] && providersID.MatchString(id) {
		return id
	}
	return ""
}

// textAt returns the text of a string, "" for any other value.
func textAt(body []byte, value rawjson.Span) string {
	if body[value.Start] != '"' {
		return ""
	}
	text, _ := rawjson.Unquote(nil, value.Of(body))
	return string(text)
}
