package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// cited are messages of the assistant that cite a page of the title TITLE and the URL https://a.b/page.
var cited = map[session.Format]string{
	session.OpenAIChat:      `{"role":"assistant","content":"It is so.","annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":9,"url":"https://a.b/page","title":"TITLE"}}]}`,
	session.OpenAIResponses: `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is so.","annotations":[{"type":"url_citation","start_index":0,"end_index":9,"url":"https://a.b/page","title":"TITLE"}]}]}`,
	session.Anthropic:       `{"role":"assistant","content":[{"type":"text","text":"It is so.","citations":[{"type":"web_search_result_location","cited_text":"c","url":"https://a.b/page","title":"TITLE","encrypted_index":"e"}]}]}`,
	session.AISDK:           `{"id":"2","role":"assistant","parts":[{"type":"text","text":"It is so."},{"type":"source-url","sourceId":"s","url":"https://a.b/page","title":"TITLE"}]}`,
}

// asked are what the user said before.
var asked = map[session.Format]string{
	session.OpenAIChat: `{"role":"user","content":"Is it so?"}`, session.OpenAIResponses: `{"role":"user","content":"Is it so?"}`, session.Anthropic: `{"role":"user","content":"Is it so?"}`,
	session.Gemini: `{"role":"user","parts":[{"text":"Is it so?"}]}`, session.AISDK: `{"id":"1","role":"user","parts":[{"type":"text","text":"Is it so?"}]}`,
}

// TestWhatATextCitesIsShownInEveryFormat wants (C-14) the format's own words for a source where it has any, else a note.
func TestWhatATextCitesIsShownInEveryFormat(t *testing.T) {
	t.Parallel()
	native := map[session.Format]string{
		session.OpenAIResponses: `"annotations":[{"type":"url_citation","start_index":0,"end_index":9,"url":"https://a.b/page","title":"TITLE"}]`,
		session.AISDK:           `"url":"https://a.b/page","title":"TITLE"}`,
		session.Anthropic:       `"encrypted_index":"e"`,
	}
	const inNote = `[Sources: TITLE <https://a.b/page>]`
	for from, body := range cited {
		for _, target := range session.Formats() {
			want := inNote
			if from == target && from != session.OpenAIChat || target == session.AISDK || from == session.OpenAIChat && target == session.OpenAIResponses {
				want = native[target]
			}
			made := wiretest.Render(target, storedOf(from, []string{asked[from], body, asked[from]}), wire.Options{})
			if got := string(made.Bodies[1]); strings.Count(got, want) != 1 || strings.Count(got, "https://a.b/page") != 1 || !strings.Contains(got, "It is so.") {
				t.Errorf("%s as %s: %s, want %s", from, target, got, want)
			}
			for _, v := range wiretest.Validate(target, made.Bodies, wire.Options{}) {
				t.Errorf("%s as %s: %s: %s", from, target, v.Rule, v.Detail)
			}
			kinds := kindsOf(made.Repairs)
			if told := kinds["sources_as_note"]; (told == 1) != (from == target && from == session.OpenAIChat) {
				t.Errorf("%s as %s: repairs %v", from, target, made.Repairs)
			}
			translated := wiretest.Translate(target, storedOf(from, []string{body}))
			if from != target && !strings.Contains(string(translated[0].Body), "https://a.b/page") {
				t.Errorf("%s as %s: a compaction does not see the source: %s", from, target, translated[0].Body)
			}
		}
	}
}

// TestWhatAnAISDKTextCitesIsShown has the places where a text of the AI SDK keeps what it cites.
func TestWhatAnAISDKTextCitesIsShown(t *testing.T) {
	t.Parallel()
	const cited = `[{"type":"page_location","document_title":"A book","url":"https://a.b/page"}]`
	for _, members := range []string{`"providerMetadata":{"anthropic":{"citations":` + cited + `}}`, `"citations":` + cited, `"annotations":` + cited} {
		body := `{"id":"1","role":"assistant","parts":[{"type":"text","text":"It is so.",` + members + `}]}`
		made := wiretest.Render(session.OpenAIChat, storedOf(session.AISDK, []string{asked[session.AISDK], body}), wire.Options{})
		if want := `[Sources: A book <https://a.b/page>]`; !strings.Contains(string(made.Bodies[1]), want) {
			t.Errorf("%s: %s, want %s", members, made.Bodies[1], want)
		}
	}
}

// TestSourcesAreNamedOnceAndWithinBounds has citations of all kinds, twice each, and more than there is room for.
func TestSourcesAreNamedOnceAndWithinBounds(t *testing.T) {
	t.Parallel()
	page := `{"type":"char_location","cited_text":"c","document_index":0,"document_title":"A \"book\"","start_char_index":0,"end_char_index":1}`
	untitled := `{"type":"page_location","cited_text":"c","document_index":3,"document_title":null,"start_page_number":1,"end_page_number":2}`
	found := `{"type":"search_result_location","cited_text":"c","search_result_index":0,"source":"kb://7","title":null,"start_block_index":0,"end_block_index":1}`
	texts := fmt.Sprintf(`{"type":"text","text":"a","citations":[%s,%s,%s]},{"type":"text","text":"b","citations":[%[1]s,%[2]s]},{"type":"tool_use","id":"c","name":"f","input":{}}`, page, untitled, found)
	made := wiretest.Render(session.OpenAIChat, storedOf(session.Anthropic, []string{`{"role":"assistant","content":[` + texts + `]}`}), wire.Options{})
	if want := `[Sources: A \"book\"; document 3; kb://7]`; !strings.Contains(string(made.Bodies[0]), want) {
		t.Errorf("%s, want %s", made.Bodies[0], want)
	}
	files := `{"type":"file_citation","file_id":"file-1","filename":"a.pdf","index":0},{"type":"container_file_citation","container_id":"c","file_id":"file-2","filename":"b.csv","start_index":0,"end_index":1},{"type":"file_path","file_id":"file-3","index":1}`
	item := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[` + files + `]}]}`
	made = wiretest.Render(session.Gemini, storedOf(session.OpenAIResponses, []string{asked[session.OpenAIResponses], item}), wire.Options{})
	if want := `[Sources: a.pdf \u003cfile-1\u003e; b.csv \u003cfile-2\u003e; file-3]`; !strings.Contains(string(made.Bodies[1]), strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(want)) {
		t.Errorf("%s, want %s", made.Bodies[1], want)
	}
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf(`{"type":"url_citation","url_citation":{"url":"https://a.b/%d/%s"}}`, i, strings.Repeat("x", 40)))
	}
	made = wiretest.Render(session.Anthropic, storedOf(session.OpenAIChat, []string{asked[session.OpenAIChat], `{"role":"assistant","content":"a","annotations":[` + strings.Join(many, ",") + `]}`}), wire.Options{})
	if got := string(made.Bodies[1]); len(got) > 4500 || !strings.Contains(got, " more]") || !strings.Contains(got, "https://a.b/0/") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
