package summary_test

import (
	"testing"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// turns returns a history: u is a message of the user, a one of the agent that begins a unit, t a result in its unit.
// Each has 10 tokens.
func turns(history string) []summary.Turn {
	all := make([]summary.Turn, len(history))
	for i, c := range history {
		all[i] = summary.Turn{User: c == 'u', UnitStart: c != 't', Tokens: 10}
	}
	return all
}

func TestBoundary(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                    string
		history                 string
		keepTurns, keepMessages int
		maxTurnTokens           int64
		want                    int
	}{
		{"everything may go where nothing is to stay", "uaua", 0, 0, 0, 4},
		{"the last turn stays from its user on", "uauatat", 1, 0, 0, 2},
		{"two turns stay", "uauaua", 2, 0, 0, 2},
		{"with fewer turns than are to stay all stay", "uaua", 3, 0, 0, 0},
		{"with just as many all from the first user on stay", "auaua", 2, 0, 0, 1},
		{"the newest messages stay", "uaaaa", 0, 2, 0, 3},
		{"the larger of turns and messages stays", "uaaauaa", 1, 5, 0, 2},
		{"more messages than there are stay", "ua", 0, 9, 0, 0},
		{"a unit stays whole", "uattua", 0, 3, 0, 1},
		{"a large turn stays from its newest end only", "uaaaaaaaa", 1, 0, 30, 6},
		{"a turn that is just small enough stays whole", "uaua", 1, 0, 20, 2},
		{"of a large turn the newest unit stays even if it is larger itself", "uaatttt", 1, 0, 20, 2},
		{"turns before a large one do not stay", "uauaaaa", 2, 0, 30, 4},
		{"a large turn before the newest is cut as well", "uaaaaua", 2, 0, 30, 2},
		{"a run without any user is one turn", "aaaaaa", 1, 0, 30, 3},
		{"what precedes the first user is a turn as large as any", "aaaaua", 2, 0, 20, 2},
		{"no messages have no boundary", "", 1, 1, 10, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := summary.Boundary(turns(tt.history), tt.keepTurns, tt.keepMessages, tt.maxTurnTokens); got != tt.want {
				t.Errorf("Boundary(%s) = %d, want %d", tt.history, got, tt.want)
			}
		})
	}
}

func FuzzBoundaryKeepsItsLaws(f *testing.F) {
	f.Add([]byte("uauatat"), 1, 2, int64(30))
	f.Add([]byte("\x00\x07\x03"), -1, -5, int64(-1))
	f.Fuzz(func(t *testing.T, history []byte, keepTurns, keepMessages int, maxTurnTokens int64) {
		all := make([]summary.Turn, len(history))
		for i, b := range history {
			all[i] = summary.Turn{User: b&1 > 0, UnitStart: b&2 > 0, Tokens: int(b >> 2)}
		}
		n := summary.Boundary(all, keepTurns, keepMessages, maxTurnTokens)
		if n < 0 || n > len(all) {
			t.Fatalf("%d of %d messages", n, len(all))
		}
		if n > 0 && n < len(all) && !all[n].UnitStart {
			t.Errorf("message %d is inside a unit", n)
		}
		users := 0
		for m, turn := range all {
			if m >= n && turn.User {
				users++
			}
		}
		if n > 0 && len(all)-n < min(keepMessages, len(all)) {
			t.Errorf("%d messages stay, want %d", len(all)-n, keepMessages)
		}
		if n > 0 && maxTurnTokens <= 0 && users < keepTurns {
			t.Errorf("%d turns stay, want %d", users, keepTurns)
		}
	})
}
