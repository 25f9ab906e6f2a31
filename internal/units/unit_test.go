package units_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/units"
)

// TestWhereAUnitBegins has a conversation a row, a word a message: U the user, A the assistant (followed by the ids
// of its calls), r a message of nothing but results (followed by their ids), m one of results and a text, c a message
// that the one before it became, too. want are the positions where units begin, late results joined.
func TestWhereAUnitBegins(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		conversation string
		items        bool
		want         []int
		open         bool
	}{
		"the first message begins one, whatever it is":             {"ra U", false, []int{0, 1}, false},
		"every message without calls is one":                       {"U A U A", false, []int{0, 1, 2, 3}, false},
		"results belong to their call":                             {"U Aab ra rb A", false, []int{0, 1, 4}, false},
		"consecutive assistant messages are units of their own":    {"U A A Aa ra", false, []int{0, 1, 2, 3}, false},
		"consecutive items of the assistant are one":               {"U A A Aa ra A A", true, []int{0, 1, 5}, false},
		"a user's message begins one after all results":            {"U Aa ra U", false, []int{0, 1, 3}, false},
		"a user's message between call and result belongs there":   {"U Aa U ra U", false, []int{0, 1, 4}, false},
		"a user's message after a call without result does, too":   {"U Aa U U", false, []int{0, 1}, true},
		"of two calls one without result keeps the unit open":      {"U Aab ra U", false, []int{0, 1}, true},
		"the next assistant message abandons the call":             {"U Aa U A U", false, []int{0, 1, 3, 4}, false},
		"a late result joins the units since its call":             {"U Aa A U ra U", false, []int{0, 1, 5}, false},
		"a late result does not close a newer open unit":           {"U Aa Ab ra U", false, []int{0, 1}, true},
		"a message of results and a text belongs to the calls":     {"U Aa ma U", false, []int{0, 1, 3}, false},
		"a message of a text and no call's result begins one":      {"U A mx", false, []int{0, 1, 2}, false},
		"a result of no call stays where it came":                  {"U A rx U", false, []int{0, 1, 3}, false},
		"what one message became stays together":                   {"U Aa cr cA U", false, []int{0, 1}, true},
		"an id that repeats after its result starts afresh":        {"U Aa ra Aa ra", false, []int{0, 1, 3}, false},
		"an id that repeats while its call waits is paired newest": {"U Aa Aa ra ra U", false, []int{0, 1, 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, open := starts(strings.Fields(test.conversation), test.items)
			if !slices.Equal(got, test.want) || open != test.open {
				t.Errorf("%s: units begin at %v, open %t; want %v, %t",
					test.conversation, got, open, test.want, test.open)
			}
		})
	}
}

func starts(conversation []string, items bool) (starts []int, open bool) {
	type place struct{ message, unit int }
	var p units.Pairer[place]
	u := units.Tracker{Items: items}
	for i, word := range conversation {
		m := units.Message{
			Assistant: strings.HasPrefix(strings.TrimPrefix(word, "c"), "A"), StartsUnit: word[0] != 'r', Continues: word[0] == 'c',
		}
		if u.Add(m) {
			starts = append(starts, i)
		}
		ids := word[1:]
		if m.Continues {
			ids = ""
		}
		for _, id := range ids {
			if m.Assistant {
				p.Call(string(id), "", place{i, u.Unit()})
				u.Called(u.Unit())
			} else if c, ok := p.Answer(string(id), ""); ok {
				u.Answered(c.unit)
				starts = units.Join(starts, c.message)
			}
		}
	}
	return starts, u.Open()
}
