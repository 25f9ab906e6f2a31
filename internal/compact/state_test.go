package compact

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"testing"
)

func someCheckpoint(t testing.TB) (Input, *Checkpoint) {
	t.Helper()
	l := &trial{}
	for seed := uint64(1); len(l.in.Tail) < 15; seed++ {
		l = newTrial(t, rand.New(rand.NewPCG(seed, 2)))
	}
	_, made := compacted(t, l.in)
	return l.in, made
}

func TestDamagedStateIsRefused(t *testing.T) {
	t.Parallel()
	in, made := someCheckpoint(t)
	end := len(made.State) - 4 // of what the checksum is of
	for name, damage := range map[string]func(c *Checkpoint){
		"an empty state":       func(c *Checkpoint) { c.State = nil },
		"a bit":                func(c *Checkpoint) { c.State[end/2] ^= 1 },
		"another version":      func(c *Checkpoint) { c.State[0]++; seal(c) },
		"another format":       func(c *Checkpoint) { c.State[1] ^= 3; seal(c) },
		"a stage too few":      func(c *Checkpoint) { c.State[2]--; seal(c) },
		"a byte too few":       func(c *Checkpoint) { c.State = c.State[:len(c.State)-1]; seal(c) },
		"a byte too many":      func(c *Checkpoint) { c.State = append(c.State[:end], 0, 0, 0, 0, 0); seal(c) },
		"another body":         func(c *Checkpoint) { c.Body = c.Body[1:] },
		"another last message": func(c *Checkpoint) { c.Through++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := *made
			c.State, c.Body = bytes.Clone(made.State), bytes.Clone(made.Body)
			damage(&c)
			if _, err := newPlan(context.Background(), Input{Format: in.Format, Policy: in.Policy, WindowTokens: 1000, Base: &c}, nil); !errors.Is(err, errState) {
				t.Errorf("got %v, want %v", err, errState)
			}
		})
	}
}

// seal makes the checksum that of the state.
func seal(c *Checkpoint) {
	end := len(c.State) - 4
	binary.LittleEndian.PutUint32(c.State[end:], crc32.Checksum(c.State[:end], castagnoli))
}

// FuzzState: no bytes make decoding panic or pass for the state of a body that they do not describe.
func FuzzState(f *testing.F) {
	in, made := someCheckpoint(f)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		state := append([]byte{}, made.State[:len(made.State)-4]...)
		state[rng.IntN(len(state))] ^= byte(1 << rng.IntN(8))
		f.Add(state)
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		in := in
		in.Base = made
		h := &history{in: in, entered: make([]int64, len(stages))}
		if !h.decode(made, state) {
			return
		}
		for i := range h.parts {
			if r := &h.parts[i]; r.value.End > len(h.body(r.message)) {
				t.Errorf("result %d ends at %d of %d bytes", i, r.value.End, len(h.body(r.message)))
			}
		}
	})
}

func TestStateOfAnUntouchedHistoryIsReadBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		l := newTrial(t, rand.New(rand.NewPCG(seed, 2)))
		_, made := compacted(t, l.in)
		if len(made.Body) == 0 {
			continue // all of it is in flight: there is nothing to restore
		}
		h, err := readHistory(context.Background(), Input{Format: l.in.Format, Policy: l.in.Policy, Base: made}, len(stages))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		again := render(&Plan{history: h, covered: len(h.messages), Through: made.Through, Entered: h.entered})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(made, again) {
			t.Errorf("seed %d: rendering what was read back makes another checkpoint", seed)
		}
	}
}
