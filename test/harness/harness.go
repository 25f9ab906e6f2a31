// Package harness is what the programs in test share: a directory for a run, the building of Varve with or without a
// defect, and processes under supervisors. What is checked is each program's own.
package harness

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MakeDir makes the directory of a run with room for its logs, and returns its path and how to remove it. Without a
// path it is a temporary one; one with a path stays.
func MakeDir(path, program string) (string, func(), error) {
	remove := func() {}
	if path == "" {
		made, err := os.MkdirTemp("", "varve-"+program+"-")
		if err != nil {
			return "", nil, err
		}
		path, remove = made, func() { _ = os.RemoveAll(made) } // a temporary one may stay
	}
	if err := os.MkdirAll(filepath.Join(path, "logs"), 0o755); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// WriteProgram writes a script that a test starts. No other program is started while the file is open: it would
// inherit the file, and Linux starts none that is open for writing ("text file busy", https://go.dev/issue/22315).
func WriteProgram(path, script string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(script), 0o700)
}

// Progress tells what a run is at, and the seconds since it began.
type Progress struct {
	began time.Time
	mu    sync.Mutex
	out   io.Writer
}

// NewProgress returns the progress of a run that begins now.
func NewProgress(out io.Writer) *Progress { return &Progress{began: time.Now(), out: out} }

// Tell writes a line.
func (p *Progress) Tell(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%6.1f s  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}

var vocabulary = strings.Fields(`alpha beacon cargo delta ember falcon garnet harbor island jigsaw kernel lantern meadow
	nickel orchid pillar quartz ribbon saddle timber umbrella velvet willow yonder zephyr return error value index`)

// Word returns a word.
func Word(random *rand.Rand) string { return vocabulary[random.IntN(len(vocabulary))] }
