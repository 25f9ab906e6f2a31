package wire

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// picture returns a PNG of this size in base64.
func picture(t testing.TB, width, height int) string {
	t.Helper()
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data.Bytes())
}

func TestAPictureCostsByItsSizeNotByItsBytes(t *testing.T) {
	t.Parallel()
	small, large := picture(t, 300, 200), picture(t, 3000, 2000)
	escaped := strings.ReplaceAll(small, "/", `\/`)
	for name, c := range map[string]struct {
		format session.Format
		block  string
		want   int
	}{
		"tiles":                      {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + small + `"}}`, 255},
		"tiles of a large one":       {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + large + `","detail":"high"}}`, 1105},
		"low detail":                 {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + large + `","detail":"low"}}`, 85},
		"with escapes":               {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image\/png;base64,` + escaped + `"}}`, 255},
		"elsewhere":                  {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}`, 1500},
		"a URL alone":                {session.OpenAIChat, `{"type":"image_url","image_url":"https://example.org/a.png"}`, 1500},
		"no picture":                 {session.OpenAIChat, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`, 1500},
		"a file":                     {session.OpenAIChat, `{"type":"file","file":{"file_data":"` + large + `"}}`, 1500},
		"area":                       {session.Anthropic, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + small + `"}}`, 80},
		"area of a large one":        {session.Anthropic, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + large + `"}}`, 1600},
		"area elsewhere":             {session.Anthropic, `{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}`, 1500},
		"inside a result":            {session.Anthropic, `{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","data":"` + small + `"}}]}`, 80},
		"a document of text":         {session.Anthropic, `{"type":"document","source":{"type":"text","data":"hello world"}}`, 2},
		"a document of bytes":        {session.Anthropic, `{"type":"document","source":{"type":"base64","data":"` + large + `"}}`, 1500},
		"reasoning that is a cipher": {session.Anthropic, `{"type":"redacted_thinking","data":"` + strings.Repeat("QUJD", 400) + `"}`, 300},
	} {
		m := inspect(t, c.format, `{"role":"user","content":[`+c.block+`]}`)
		if got := m.Parts[0].Tokens; got != c.want || m.Tokens != got+MessageTokens {
			t.Errorf("%s: %d tokens, %d of the message, want %d", name, got, m.Tokens, c.want)
		}
	}
}

func TestCountAsksForEveryTextAsTheModelSeesIt(t *testing.T) {
	t.Parallel()
	var asked []string
	body := `{"role":"assistant","content":[{"type":"text","text":"a\nb"},{"type":"thinking","thinking":"\u4e2d"},{"type":"tool_use","id":"c","name":"read","input":{"p":"\n"}},{"type":"zzz"}]}`
	m, err := Count(session.Anthropic, []byte(body), func(text string) (int, error) {
		asked = append(asked, text)
		return 10, nil
	})
	if got, want := strings.Join(asked, "|"), "a\nb|中|read|"+`{"p":"\n"}|{"type":"zzz"}`; err != nil || got != want || m.Tokens != 50+MessageTokens {
		t.Errorf("%d tokens of %q, want of %q; %v", m.Tokens, got, want, err)
	}
}
