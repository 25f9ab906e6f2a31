package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// TestOtherMembersAreThoseOfTheText has objects whose members are known after one reading, and those that are not:
// repeated names, names with escapes, and more members than are kept in place.
func TestOtherMembersAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range 30 {
		many += fmt.Sprintf(`,"m%d":%d`, i, i)
	}
	for _, others := range []string{``, `,"a":{"b":[1, 2]}`, `,"a":1,"a":2`, `,"\u0061":1`, `,"a\/b" : null`, many, many + `,"m3":"again"`} {
		body := []byte(`{"role":"user"` + others + `,"content":"x"}`)
		want := string(othersOf(body, "role", "content"))
		if got := string(Decode(session.Anthropic, body)[0].Extra); got != want {
			t.Errorf("%s: the others are %s, want %s", body, got, want)
		}
		if others != "" && strings.Count(want, ":") < strings.Count(others, ":")-1 {
			t.Errorf("%s: the others are %s", body, want)
		}
	}
}
