// Command memory shows that memory is bounded by the limit of a process and not by its sessions. An API and a worker
// run within a limit, in a memory cgroup of their own where one can be made. Sessions of pictures, together far larger
// than the limit, are read in all ways and compacted, all at the same time. No process may die or exceed its limit,
// each request must be answered, all sessions must be compacted in the end, and no byte of a log may be another.
//
//	go run ./test/memory -sessions 4 -bytes 495000000 -limit 1GiB
//
// It prints a table, and ends with 1 if one of these does not hold. Start at run in this file. limit.go has the limits,
// rig.go the processes, load.go the sessions, the readers and the checks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/varve-dev/varve/test/harness"
)

// options are what a run does.
type options struct {
	sessions int
	bytes    int64 // of each session
	picture  int   // bytes of each picture
	limit    int64 // bytes of memory of each process
	patience time.Duration
	dir      string // for data and logs
	out      io.Writer
}

func main() {
	o := options{out: os.Stdout}
	limit := ""
	flag.IntVar(&o.sessions, "sessions", 4, "that are read and compacted at once")
	flag.Int64Var(&o.bytes, "bytes", 495_000_000, "of each session")
	flag.IntVar(&o.picture, "picture", 1_500_000, "bytes of each picture")
	flag.StringVar(&limit, "limit", "1GiB", "memory of each process")
	flag.DurationVar(&o.patience, "patience", 15*time.Minute, "within which all sessions must be compacted")
	flag.StringVar(&o.dir, "dir", "", "for data and logs; a temporary one that is removed by default")
	flag.Parse()
	bytes, err := humanize.ParseBytes(limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory: -limit:", err)
		os.Exit(2)
	}
	o.limit = int64(bytes)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(2)
	}
	if found.print(o.out); len(found.anomalies) > 0 {
		os.Exit(1)
	}
}

// run fills the sessions, reads and compacts all of them at once, checks, and does what is done afterwards. An error is
// one of the harness.
func run(ctx context.Context, o options) (found *findings, err error) {
	dir, remove, err := harness.MakeDir(o.dir, "memory")
	if err != nil {
		return nil, err
	}
	defer remove()
	o.dir = dir
	r, err := startRig(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.fill(ctx); err != nil {
		return nil, fmt.Errorf("%w; logs: %s", err, filepath.Join(o.dir, "*.log"))
	}
	r.atOnce(ctx)
	r.check(ctx)
	r.afterwards(ctx)
	r.measure()
	return r.found, ctx.Err()
}

// findings are what a run found.
type findings struct {
	mu        sync.Mutex
	anomalies []string
	answers   map[string]int // requests by what was asked and how it was answered
	rows      []string       // of the table
}

func (f *findings) add(form string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.anomalies = append(f.anomalies, fmt.Sprintf(form, args...))
}

func (f *findings) answered(asked, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[fmt.Sprintf("%-32s %s", asked, answer)]++
}

func (f *findings) row(form string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(f.rows, fmt.Sprintf(form, args...))
}
