package compact

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// unitsEnv tells the test binary that this test builds how many units the sessions have that it compacts.
const unitsEnv = "VARVE_GROWTH_UNITS"

// TestWorkGrowsWithTheSession compacts sessions and sessions that are sixteen times as long, and compares how often each
// block of the engine's statements ran: about sixteen times as often, more where something is sorted or was too little to
// be cut before, where a loop within a loop runs 256 times as often.
func TestWorkGrowsWithTheSession(t *testing.T) {
	t.Parallel()
	if units, err := strconv.Atoi(os.Getenv(unitsEnv)); err == nil {
		compactLong(t, units)
		return
	}
	const units, seldom, limit = 200, 20_000, 100
	program := filepath.Join(t.TempDir(), "growth")
	build := exec.Command("go", "test", "-c", "-vet=off", "-covermode=count", "-coverpkg=./...", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	few, many := runsOfBlocks(t, program, units), runsOfBlocks(t, program, 16*units)
	for block, n := range many {
		if before := few[block]; before > 0 && n > seldom && n > limit*before {
			t.Errorf("%s: %d times, and %d times for sessions of a sixteenth", block, n, before)
		}
	}
	if len(few) < 1000 {
		t.Errorf("%d blocks ran", len(few))
	}
}

// runsOfBlocks returns how often each block ran while sessions of that many units were compacted.
func runsOfBlocks(t *testing.T, program string, units int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	run := exec.Command(program, "-test.run", "^"+t.Name()+"$", "-test.coverprofile", profile)
	run.Env = append(os.Environ(), fmt.Sprintf("%s=%d", unitsEnv, units))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && !strings.Contains(f[0], "test") {
			n, err := strconv.Atoi(f[2])
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				runs[f[0]] = n
			}
		}
	}
	return runs
}

// compactLong compacts a session from the log, in a window that leaves most of it and in a small one, and again and again
// while it grows.
func compactLong(t *testing.T, units int) {
	t.Helper()
	p := policy.Default()
	p.Trim.Enabled, p.Arguments.Enabled = true, true
	in := input(t, session.Anthropic, p, 1, longWork(units)...)
	tokens := 0
	for i := range in.Tail {
		tokens += in.Tail[i].Tokens
	}
	for _, in.WindowTokens = range []int{tokens, 16_000} {
		if plan, _ := compacted(t, in); !plan.Changed() {
			t.Errorf("nothing of %d tokens leaves a window of %d", tokens, in.WindowTokens)
		}
	}
	grow(t, in)
}

// grow compacts a session whenever half a window of messages has come.
func grow(t *testing.T, in Input) {
	t.Helper()
	all, tokens := in.Tail, 0
	in.Tail = nil
	for _, e := range all {
		in.Tail = append(in.Tail, e)
		if tokens += e.Tokens; 2*tokens < in.WindowTokens {
			continue
		}
		_, made, err := Run(context.Background(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		in.Base, tokens = made, 0
		for len(in.Tail) > 0 && in.Tail[0].Seq <= made.Through {
			in.Tail = in.Tail[1:]
		}
	}
}

// longWork has all that the engine remembers: demands, decisions, files that are read, written and changed, commands that
// fail and succeed, each with names of its own.
func longWork(units int) (moves []move) {
	for i := range units {
		if i%20 == 0 {
			moves = append(moves, asks(fmt.Sprintf("Never touch part_%d, because billing_%d needs it. Now mend worker_%d.", i, i, i)))
		}
		tool, sent := "Read", fmt.Sprintf(`{"path":"src/part_%d.go"}`, i)
		said := fmt.Sprintf("func handler_%d(w io.Writer) error {\n\treturn part_%d.Close(%d)\n}\n", i, i, 40_000+i)
		switch i % 5 {
		case 1:
			tool, sent = "Write", fmt.Sprintf(`{"path":"src/part_%d.go","content":%s}`, i, literal(strings.Repeat(said, 3)))
		case 2:
			tool, sent = "Bash", fmt.Sprintf(`{"command":"make test_%d"}`, i)
			said += fmt.Sprintf("src/part_%d.go:%d: error: undefined name_%d\nexit code 1\n", i, i, i)
		case 3:
			tool, sent = "Bash", fmt.Sprintf(`{"command":"make test_%d"}`, i-1)
			said += fmt.Sprintf("ok: %d passed\n", i)
		}
		id := fmt.Sprint("c", i)
		moves = append(moves, says(fmt.Sprintf("The cause is name_%d in part_%d, because it must close. I decided to keep it.", i, i)),
			calls(id, tool, sent), answered(id, literal(said)))
	}
	return moves
}
