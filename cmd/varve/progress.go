package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
)

// progress shows how far the import of several files is.
type progress struct {
	command.Meter
	total    int64 // bytes of all files
	before   int64 // bytes of the files that are done
	earlier  int64 // messages of the files that are done
	read     int64 // bytes of the file that is being imported, as far as they are sent
	messages int64
	failures int // files
	started  time.Time
}

// newProgress returns the progress of files with a total of bytes.
func newProgress(out *os.File, total int64) *progress {
	limit := total
	if total == 0 {
		limit = -1
	}
	return &progress{
		Meter: command.NewMeter(out, limit, progressbar.OptionShowBytes(true)), total: total, started: time.Now(),
	}
}

// set shows the state of a file's import and how many of its bytes are done.
func (p *progress) set(bytes int64, i *protocol.Import) {
	done := p.before + bytes
	if p.total > 0 {
		done = min(done, p.total)
	}
	p.messages = p.earlier + i.Messages + i.Duplicates
	failed := ""
	if p.failures > 0 {
		failed = fmt.Sprintf(", %d files failed", p.failures)
	}
	if i.Rejected > 0 {
		failed += fmt.Sprintf(", %d lines rejected", i.Rejected)
	}
	elapsed := p.Now().Sub(p.started)
	remaining := time.Duration(0)
	if done > 0 && p.total > 0 {
		remaining = time.Duration(float64(elapsed) * float64(p.total-done) / float64(done)).Round(time.Second)
	}
	rate := float64(p.messages) / max(elapsed.Seconds(), 0.001)
	p.Update(done, p.total, fmt.Sprintf("%.1f MB read, %d messages (%.0f/s)%s", float64(p.read)/1e6, p.messages, rate,
		failed),
		fmt.Sprintf("%.1f of %.1f MB, %d messages, %.0f/s, %s left%s",
			float64(done)/1e6, float64(p.total)/1e6, p.messages, rate, remaining, failed))
}

// next ends a file of a number of bytes.
func (p *progress) next(bytes int64) {
	p.before += bytes
	p.earlier = p.messages
}
