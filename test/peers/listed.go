package peers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// CheckListed wants a repair for each message that a view in its own format does not have as it was appended. told are
// the numbers of the messages, from 1, that the repairs name.
func (s *Suite) CheckListed(format string, appended, view [][]byte, told map[int64]bool, repairs any) {
	s.t.Helper()
	left := map[string]int{}
	for _, body := range view {
		left[string(body)]++
	}
	for i, body := range appended {
		if told[int64(i+1)] {
			continue
		}
		if left[string(body)]--; left[string(body)] < 0 {
			s.Found(format, Violation{By: "repairs", What: "none tells what became of " + typeOf(body)},
				fmt.Sprintf("%s\n\tview %s\n\trepairs %v", body, bytes.Join(view, []byte("\n\t")), repairs))
		}
	}
}

func typeOf(body []byte) string {
	var m struct{ Type, Role string }
	_ = json.Unmarshal(body, &m)
	return cmp.Or(m.Type, "a message of role "+m.Role)
}
