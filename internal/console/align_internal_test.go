package console

import (
	"testing"

	"github.com/varve-dev/varve/internal/compact/manifest"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// TestAMessageThatASummaryKeepsIsARowOfItsOwn, of itself alone: the next unit of the view begins behind the messages
// that the summary replaces.
func TestAMessageThatASummaryKeepsIsARowOfItsOwn(t *testing.T) {
	t.Parallel()
	user := func(text string) []byte { return []byte(`{"role":"user","content":"` + text + `"}`) }
	units := []protocol.ViewUnit{
		{First: 2, Last: 5, Messages: []protocol.ViewMessage{{Format: session.OpenAIChat, Message: user("a summary")}}},
		{First: 6, Last: 9, Messages: []protocol.ViewMessage{{Format: session.OpenAIChat, Message: user("go on")}}},
	}
	replaced := manifest.Entry{Seq: 2, LastSeq: 9, Part: -1, Do: "summarise", TokensBefore: 900, TokensAfter: 90}
	a := newAligner("s", []protocol.ManifestEntry{{Entry: replaced}}, nil, 9, listedPart)
	if asked := a.ranges(units); len(asked) != 1 || asked[0].First != 6 || asked[0].Last != 6 {
		t.Errorf("of the log are asked: %v", asked)
	}
	log := []protocol.Message{{Seq: 6, Format: session.OpenAIChat, Message: user("go on"), Tokens: 7}}
	rows := a.align(units, log)
	if len(rows) != 2 || !rows[0].IsRange() || rows[1].First != 6 || rows[1].Last != 6 || rows[1].Kind != kept || rows[1].Before != 7 || !rows[1].View.Same {
		t.Errorf("%+v", rows)
	}
}
