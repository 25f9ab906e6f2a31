package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress tells how far an import is: a bar on a terminal, else a line every ten seconds.
type progress struct {
	out      io.Writer
	bar      *progressbar.ProgressBar // nil if out is no terminal
	now      func() time.Time
	total    int64
	done     int64
	messages int
	failures int   // files
	rejected int64 // lines of a file
	started  time.Time
	told     time.Time
}

const tellEvery = 10 * time.Second

func newProgress(out *os.File, total int64) *progress {
	p := &progress{out: out, now: time.Now, total: total, started: time.Now(), told: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(out), progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	return p
}

// set says how many bytes of the files are done, and that more messages are stored.
func (p *progress) set(done int64, messages int) {
	p.done = min(done, p.total)
	p.messages += messages
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%d messages (%.0f/s)%s", p.messages, p.rate(), p.failed()))
		_ = p.bar.Set64(p.done) // a bar that cannot be drawn does not stop the import
		return
	}
	if now := p.now(); now.Sub(p.told) >= tellEvery {
		p.told = now
		fmt.Fprintf(p.out, "%.1f of %.1f MB, %d messages, %.0f/s, %s left%s\n", float64(p.done)/1e6, float64(p.total)/1e6, p.messages, p.rate(), p.left(), p.failed())
	}
}

func (p *progress) fail() { p.failures++ }

// reject says how many lines of the file that is being imported were rejected.
func (p *progress) reject(lines int64) { p.rejected = lines }

// finish takes the bar away.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

func (p *progress) rate() float64 {
	return float64(p.messages) / max(p.now().Sub(p.started).Seconds(), 0.001)
}

func (p *progress) left() time.Duration {
	if p.done == 0 {
		return 0
	}
	return time.Duration(float64(p.now().Sub(p.started)) * float64(p.total-p.done) / float64(p.done)).Round(time.Second)
}

func (p *progress) failed() (text string) {
	if p.failures > 0 {
		text = fmt.Sprintf(", %d files failed", p.failures)
	}
	if p.rejected > 0 {
		text += fmt.Sprintf(", %d lines rejected", p.rejected)
	}
	return text
}
