package compactor

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// What the policy keeps, and a turn that does not end, are bounded by the room, whatever the windows' size is.
func TestAWindowWithoutRoomIsAnErrorThatNamesBothSizes(t *testing.T) {
	t.Parallel()
	const size, room = 300 << 10, 2 << 20
	picture := bytes.Repeat([]byte{'A'}, size)
	logOf := func(bodies ...string) postgres.Snapshot {
		snap := postgres.Snapshot{Format: session.Anthropic, Calibration: 1, WindowTokens: 1_000_000}
		for _, body := range bodies {
			snap.LastSeq++
			found, err := wire.Inspect(snap.Format, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			snap.Tail = append(snap.Tail, postgres.LogMessage{Seq: snap.LastSeq, Format: snap.Format, Tokens: int64(found.Tokens), Body: []byte(body)})
			snap.ContextTokens += int64(found.Tokens)
		}
		return snap
	}
	kept, open := []string{`{"role":"user","content":"use the computer"}`}, []string{`{"role":"user","content":"use the computer"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"open","name":"computer","input":{}}]}`}
	for n := range 20 {
		image := fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`, picture)
		kept = append(kept, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"computer","input":{}}]}`, n),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[%s]}]}`, n, image))
		open = append(open, fmt.Sprintf(`{"role":"user","content":[%s]}`, image))
	}
	p := policy.Default()
	p.MediaBytes, p.TriggerBytes = 0, 0
	for name, snap := range map[string]postgres.Snapshot{"a policy that keeps all": logOf(kept...), "a turn that does not end": logOf(open...)} {
		bounded := planner{window: 3 * size, room: room}
		_, err := bounded.plan(t.Context(), snap, &p, FromLog)
		if !errors.Is(err, session.ErrTooHeavy) || !strings.Contains(fmt.Sprint(err), fmt.Sprint(room)) {
			t.Errorf("%s: %v", name, err)
		}
		free := planner{window: 3 * size}
		if _, err := free.plan(t.Context(), snap, &p, FromLog); err != nil {
			t.Errorf("%s, without a bound: %v", name, err)
		}
	}
}

// A session without a checkpoint weighs what its view keeps, beside the window.
func TestWhatIsKeptIsWeighedBeforeItIsThere(t *testing.T) {
	t.Parallel()
	const mega = 1 << 20
	pictures := postgres.Weight{Tail: 500 * mega, Window: 128_000, Media: 8 * mega}
	keeps := pictures
	keeps.Media = 0
	small := postgres.Weight{Checkpoint: mega, Tail: mega, Window: 128_000, Media: 8 * mega}
	for name, test := range map[string]struct {
		of       postgres.Weight
		from, to int64
	}{
		"pictures of which most leave": {pictures, memoryPerByte * 12 * mega, memoryPerByte * 20 * mega},
		"a policy that keeps all":      {keeps, memoryPerByte * 500 * mega, memoryPerByte * 501 * mega},
		"a small session":              {small, memoryPerByte * 2 * mega, memoryPerByte * 2 * mega},
	} {
		if got := Memory(test.of, 4*mega); got < test.from || got > test.to {
			t.Errorf("%s: %d MiB", name, got/mega)
		}
	}
	for _, memory := range []int64{1, 10 * mega, 100 * mega, 1000 * mega} {
		if w := WindowWithin(memory); w < mega || w > DefaultWindow || RoomWithin(memory) < w+8*mega {
			t.Errorf("%d MiB have a window of %d bytes and room for %d", memory/mega, w, RoomWithin(memory))
		}
	}
}
