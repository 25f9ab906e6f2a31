package units_test

import (
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/units"
)

// TestAResultFindsItsCallUnderAnAlias has results under each form of an id that a view gives a call.
func TestAResultFindsItsCallUnderAnAlias(t *testing.T) {
	t.Parallel()
	long := "call_1__thought__" + strings.Repeat("s", 400)
	for name, result := range map[string]string{
		"of 40 characters":           units.Alias(long, long, 0, 40),
		"of 64 characters":           units.Alias(long, long, 0, 64),
		"of an id that came before":  units.Alias(long, long, 2, 64),
		"of nine letters and digits": units.PlainAlias(long, 0, 9),
		"the id itself":              long,
	} {
		var p units.Pairer[int]
		p.Call("other", "", 1)
		p.Call(long, "", 2)
		if call, ok := p.Answer(result, ""); !ok || call != 2 {
			t.Errorf("%s: answers %d, %t", name, call, ok)
		}
		if _, ok := p.Answer(result, ""); ok {
			t.Errorf("%s: answers again", name)
		}
		p.Call(long, "", 3) // after the first alias was looked for
		if call, ok := p.Answer(result, ""); !ok || call != 3 {
			t.Errorf("%s: the second call is answered by %d, %t", name, call, ok)
		}
	}
}

func TestAnIdThatOnlyLooksLikeAnAliasAnswersNothing(t *testing.T) {
	t.Parallel()
	var p units.Pairer[int]
	p.Call("a", "", 1)
	for _, id := range []string{"a_0123456789", "ABCDEFGHI", "a_", "", "_", units.Alias("b", "b", 0, 40)} {
		if _, ok := p.Answer(id, ""); ok {
			t.Errorf("%q answers", id)
		}
	}
	if call, ok := p.Answer("a", ""); !ok || call != 1 {
		t.Error("the call waits no longer")
	}
}
