package tokens_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/tokens"
)

func TestTheFileTellsHowManyPagesItHas(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("0 0 m 100 100 l S\n", 50)
	var pages strings.Builder
	for n := range 40 {
		fmt.Fprintf(&pages, "%d 0 obj<</Type /Page/Parent 2 0 R>>stream\n%sendstream endobj\n", n+3, filler)
	}
	for name, c := range map[string]struct {
		file string
		want int
	}{
		"forty pages":            {"%PDF-1.4\n2 0 obj<</Type/Pages/Kids[]>>endobj\n" + pages.String(), 40},
		"their number alone":     {"%PDF-1.4\n2 0 obj<</Type/Pages/Count 12/Kids[]>>endobj\n" + filler, 12},
		"a number that is wrong": {"%PDF-1.4\n2 0 obj<</Type/Pages/Count 90000>>endobj\n" + filler, 14},
		"compressed objects":     {"%PDF-1.7\n" + strings.Repeat("x", 250<<10), 3},
		"no PDF":                 {"PK" + filler, 0},
		"nothing":                {"", 0},
	} {
		if got := tokens.Pages([]byte(base64.StdEncoding.EncodeToString([]byte(c.file)))); got != c.want {
			t.Errorf("%s: %d pages, want %d", name, got, c.want)
		}
	}
}

func TestASoundCostsBySeconds(t *testing.T) {
	t.Parallel()
	wav := "RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00" // 32,000 bytes a second
	mp3 := "\xff\xfb\xa0\x00"                                                                                                                 // 160 kbit
	picture := "ID3\x04\x00\x00\x00\x02\x00\x00" + strings.Repeat("p", 2<<14)
	for name, c := range map[string]struct {
		kind, file string
		costs      tokens.Costs
		want       int
	}{
		"a minute of WAV":               {"audio/wav", wav + strings.Repeat("x", 60*32_000), tokens.CostsOfGoogle, 60 * 32},
		"for OpenAI":                    {"audio/wav", wav + strings.Repeat("x", 60*32_000), tokens.CostsOfOpenAI, 60 * 10},
		"a minute of MP3":               {"audio/mpeg", mp3 + strings.Repeat("x", 60*20_000), tokens.CostsOfGoogle, 60 * 32},
		"behind a picture":              {"audio/mpeg", picture + mp3 + strings.Repeat("x", 60*20_000-32768), tokens.CostsOfGoogle, 60 * 32},
		"a minute of another sound":     {"audio/ogg", strings.Repeat("x", 60*16_000), tokens.CostsOfGoogle, 60 * 32},
		"a minute of a film":            {"video/mp4", strings.Repeat("x", 60*250_000), tokens.CostsOfGoogle, 60 * 263},
		"what is neither":               {"application/zip", strings.Repeat("x", 60*250_000), tokens.CostsOfGoogle, tokens.Unknown},
		"a sound of less than a second": {"audio/wav", wav, tokens.CostsOfGoogle, 32},
	} {
		got := c.costs.File([]byte(base64.StdEncoding.EncodeToString([]byte(c.file))), c.kind)
		if got < c.want || got > c.want+2 {
			t.Errorf("%s: %d tokens, want %d", name, got, c.want)
		}
	}
}
