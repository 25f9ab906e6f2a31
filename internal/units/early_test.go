package units_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/units"
)

// TestWhichResultsWaitForACall has a conversation a row: "+id" is a call, "-id" a result, U the user. want has for each
// call the places of the results that may stand before it.
func TestWhichResultsWaitForACall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		conversation string
		want         [][]int
	}{
		"a result that answers a call before it does not wait": {"+a -a +b", [][]int{nil, nil}},
		"a result waits for a call of its id":                  {"-a +b +a", [][]int{nil, {0}}},
		"the nearest result is the first":                      {"-a -b -a +a", [][]int{{2, 0}}},
		"several calls may take a result":                      {"-a +a +a", [][]int{{0}, {0}}},
		"what the user says ends the waiting":                  {"-a U +a", [][]int{nil}},
		"a result waits again after the user":                  {"-a U -a +a", [][]int{{2}}},
		"a second result of a call waits for no other":         {"+a -a -a +a", [][]int{nil, nil}},
		"a result waits for 64 messages":                       {"-a" + strings.Repeat(" +b -b", 31) + " +b +a", append(slices.Repeat([][]int{nil}, 32), []int{0})},
		"a result waits for no more":                           {"-a" + strings.Repeat(" +b -b", 32) + " +a", slices.Repeat([][]int{nil}, 33)},
		"nor does one of an id that was called long ago":       {"+a -a U -a +a", [][]int{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p units.Pairer[int]
			var e units.Early[int]
			var got [][]int
			for at, word := range strings.Fields(test.conversation) {
				id := word[1:]
				switch word[0] {
				case '+':
					p.Call(id, "", at)
					got = append(got, e.Call(id, at))
					e.Called(id)
				case '-':
					if _, ok := p.Answer(id, ""); !ok {
						e.Result(id, at, at)
					}
				default:
					e.Said()
				}
			}
			if !slices.EqualFunc(got, test.want, func(a, b []int) bool { return slices.Equal(a, b) }) {
				t.Errorf("%s: %v wait, want %v", test.conversation, got, test.want)
			}
		})
	}
}
