package usage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
)

// sums counts numbers by name, and writes them into written.
func sums(max, statement int, written map[string]int, failing *error) (*counts[string, int], *int) {
	dropped := new(int)
	return &counts[string, int]{
		After: time.Hour, Timeout: time.Minute, Max: max, Statement: statement,
		Merge: func(into *int, more int) { *into += more },
		Write: func(_ context.Context, _ uuid.UUID, list []entry[string, int]) error {
			if *failing != nil {
				return *failing
			}
			if len(list) > statement {
				return fmt.Errorf("%d entries in one statement", len(list))
			}
			for _, e := range list {
				written[e.Key] += e.Value
			}
			return nil
		},
		Failed:  func(uuid.UUID, error) {},
		Dropped: func(lost int) { *dropped += lost },
	}, dropped
}

func TestAFloodOfKeysNeedsBoundedMemory(t *testing.T) {
	t.Parallel()
	written := map[string]int{}
	counted, dropped := sums(100, 10, written, new(error))
	tenant := uuid.New()
	for i := range 300 {
		counted.Add(tenant, fmt.Sprint(i), 1)
		counted.Add(tenant, "0", 1)
	}
	if counted.Waiting() != 100 || *dropped != 200 {
		t.Errorf("%d keys wait, %d counts are dropped", counted.Waiting(), *dropped)
	}
	counted.Flush(t.Context())
	if len(written) != 100 || written["0"] != 301 || counted.Waiting() != 0 {
		t.Errorf("%d keys are written, the first with %d; %d wait", len(written), written["0"], counted.Waiting())
	}
}

func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	written := map[string]int{}
	failing := errors.New("away")
	counted, dropped := sums(100, 10, written, &failing)
	for i := range 25 {
		counted.Add(uuid.UUID{byte(i % 2)}, fmt.Sprint(i), 1)
	}
	counted.Flush(t.Context())
	if counted.Waiting() != 25 || len(written) != 0 {
		t.Errorf("%d keys wait, %v is written", counted.Waiting(), written)
	}
	counted.Add(uuid.UUID{}, "0", 1)
	failing = nil
	counted.Flush(t.Context())
	if counted.Waiting() != 0 || len(written) != 25 || written["0"] != 2 || *dropped != 0 {
		t.Errorf("%d keys wait, %v is written, %d are dropped", counted.Waiting(), written, *dropped)
	}
}

func TestTheFirstCountSetsATimerAndSoDoesTheNextOneAfterIt(t *testing.T) {
	t.Parallel()
	wrote := make(chan int)
	counted := counts[string, int]{
		After: time.Millisecond, Timeout: time.Minute, Max: 10, Statement: 10,
		Merge: func(into *int, more int) { *into += more },
		Write: func(_ context.Context, _ uuid.UUID, list []entry[string, int]) error {
			wrote <- list[0].Value
			return nil
		},
	}
	for i := range 3 {
		counted.Add(uuid.Nil, "a", i)
		if got := <-wrote; got != i {
			t.Errorf("%d is written, want %d", got, i)
		}
	}
}
