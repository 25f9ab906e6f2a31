package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// setClocks makes PostgreSQL, which is started later, ask libfaketime for the time, and returns what takes the file
// away that sets it. Go does not ask the library: the processes of Varve have the machine's clock.
func setClocks(o *options) (remove func()) {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // the pattern is well formed
	if len(found) == 0 {
		fmt.Fprintln(o.out, "skipped: a clock that jumps needs libfaketime (Debian: apt-get install faketime)")
		os.Exit(0)
	}
	o.clock = filepath.Join(os.TempDir(), fmt.Sprintf("varve-clock-%d", os.Getpid()))
	for name, value := range map[string]string{
		"FAKETIME_TIMESTAMP_FILE": o.clock, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
		"DONT_FAKE_MONOTONIC": "1", "LD_PRELOAD": found[0],
	} {
		_ = os.Setenv(name, value) // the names are no empty ones
	}
	_ = jump(o.clock, "+0")
	return func() { _ = os.Remove(o.clock) }
}

// jump sets the clock to a time relative to the machine's. PostgreSQL runs as another user, who must read it.
func jump(clock, offset string) error {
	return os.WriteFile(clock, []byte(offset+"\n"), 0o644)
}

func ofClocks() (all []fault) {
	for _, offset := range []string{"+1h", "-1h", "+1s", "-1s", "+8d"} {
		all = append(all, fault{name: "clock of the database " + offset, lasts: 8 * time.Second,
			begin: func(_ context.Context, r *rig, _ *rand.Rand) (end, error) {
				back := func(context.Context) error { return jump(r.options.clock, "+0") }
				return back, jump(r.options.clock, offset)
			}})
	}
	return all
}
