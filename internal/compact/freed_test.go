package compact_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// TestHowManyMessagesEndAProtection has a user's message and five units of a call and its result of 100 tokens each; the
// result of the third unit has 900 more.
func TestHowManyMessagesEndAProtection(t *testing.T) {
	t.Parallel()
	in := compact.Input{Format: session.OpenAIChat, WindowTokens: 100_000}
	add := func(tokens int, body string) {
		in.Tail = append(in.Tail, compact.Entry{Seq: int64(len(in.Tail) + 1), Tokens: tokens, Body: []byte(body)})
	}
	add(10, `{"role":"user","content":"go"}`)
	for n := range 5 {
		add(20, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, n))
		add(80+900*map[int]int{2: 1}[n], fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"text"}`, n))
	}
	for name, c := range map[string]struct {
		protect policy.Protect
		tokens  int64
		want    int
	}{
		"nothing is protected":             {policy.Protect{}, 50, 0},
		"the oldest of two units":          {policy.Protect{LastUnits: 2}, 100, 1},
		"both units":                       {policy.Protect{LastUnits: 2}, 101, 2},
		"more than they have":              {policy.Protect{LastUnits: 2}, 201, 0},
		"the large one is the oldest":      {policy.Protect{LastUnits: 3}, 1000, 1},
		"the large one is in the middle":   {policy.Protect{LastUnits: 4}, 1000, 2},
		"it is one of the newest messages": {policy.Protect{LastMessages: 5}, 980, 1},
		"it is one of six":                 {policy.Protect{LastMessages: 8}, 980, 4},
		"the longer protection counts":     {policy.Protect{LastUnits: 3, LastMessages: 6}, 980, 2},
		"the turn":                         {policy.Protect{LastTurns: 1, MaxTurnRatio: 1}, 1000, 1},
		"two turns":                        {policy.Protect{LastTurns: 2, MaxTurnRatio: 1}, 1000, 2},
	} {
		in.Policy = *policy.Default().Off()
		in.Policy.Protect = c.protect
		plan, _, err := compact.Run(context.Background(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.FreedAfter(c.tokens); got != c.want {
			t.Errorf("%s: %d tokens after %d messages, want %d", name, c.tokens, got, c.want)
		}
	}
}
