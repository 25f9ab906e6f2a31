package compact

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/compact/pin"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

func TestPatternsAreHeldAgainstTheRolesOfThePolicy(t *testing.T) {
	t.Parallel()
	const rule = "Rule of the "
	moves := []move{
		word("system", rule+"system"), asks("hi\n" + rule + "user"), says("well\n" + rule + "assistant\nso"),
		returns("Read", "f", "x\n"+rule+"tool\n"+pin.Open+"of the tool"+pin.Close), asks("go on"),
	}
	for _, f := range session.Formats() {
		for _, test := range []struct {
			roles []policy.Speaker
			want  []string
		}{
			{policy.Default().Pins.Roles, []string{"system", "user"}},
			{[]policy.Speaker{policy.ToolSpeaks}, []string{"tool"}},
			{[]policy.Speaker{policy.AssistantSpeaks}, []string{"assistant"}},
			{nil, nil},
		} {
			p := policy.Default()
			p.Pins.Patterns, p.Pins.Roles, p.Pins.Markers = []string{"^Rule"}, test.roles, true
			h, err := readHistory(t.Context(), Input{Format: f, Policy: p, WindowTokens: 9000, Tail: writtenIn(t, f, moves)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for i := range h.marked {
				found = append(found, h.marked[i].Text[len(rule):])
			}
			if !slices.Equal(found, test.want) {
				t.Errorf("%s: the roles %v pin %q, want %q", f, test.roles, found, test.want)
			}
		}
	}
}

func TestAPolicyPinsTextsOfRolesWhole(t *testing.T) {
	t.Parallel()
	moves := []move{
		word("system", "Be brief.\nAlways."), asks("hi\nthere"), word("system", "Answer in French.\nFrom now on."), says("Oui."), asks("go on"),
	}
	const later, user = "Answer in French.\nFrom now on.", "hi\nthere|go on"
	for _, f := range session.Formats() {
		for _, test := range []struct {
			whole     []policy.Speaker
			protected bool
			want      string
		}{
			{[]policy.Speaker{policy.SystemSpeaks}, true, later},
			{[]policy.Speaker{policy.SystemSpeaks}, false, "Be brief.\nAlways.|" + later},
			{[]policy.Speaker{policy.UserSpeaks}, true, user},
			{nil, true, ""},
		} {
			p := policy.Default()
			p.Pins.Whole, p.Protect.System = test.whole, test.protected
			h, err := readHistory(t.Context(), Input{Format: f, Policy: p, WindowTokens: 9000, Tail: writtenIn(t, f, moves)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for i := range h.marked {
				found = append(found, h.marked[i].Text)
			}
			if got := strings.Join(found, "|"); got != test.want {
				t.Errorf("%s: %v whole, and the system's first message is protected: %t: %q, want %q", f, test.whole, test.protected, got, test.want)
			}
		}
	}
}
