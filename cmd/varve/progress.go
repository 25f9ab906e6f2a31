package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/varve-dev/varve/internal/protocol"
)

// progress shows how far an import is: a bar on a terminal, else a line every ten seconds.
type progress struct {
	out      io.Writer
	bar      *progressbar.ProgressBar // nil if out is not a terminal
	now      func() time.Time
	total    int64 // bytes of all files
	before   int64 // bytes of the files that are done
	done     int64 // bytes
	earlier  int64 // messages of the files that are done
	messages int64
	failures int   // files
	rejected int64 // lines of the file
	started  time.Time
	printed  time.Time
}

// printEvery is how often a line of progress is printed where no bar can be drawn.
const printEvery = 10 * time.Second

func newProgress(out *os.File, total int64) *progress {
	p := &progress{out: out, now: time.Now, total: total, started: time.Now(), printed: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		p.bar = newBar(out, total, progressbar.OptionShowBytes(true))
	}
	return p
}

func newBar(out io.Writer, total int64, counts progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, counts, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
}

// set shows the state of the file's import, of which so many bytes are done.
func (p *progress) set(bytes int64, i *protocol.Import) {
	p.done = min(p.before+bytes, p.total)
	p.messages = p.earlier + i.Messages + i.Duplicates
	p.rejected = i.Rejected
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%d messages (%.0f/s)%s", p.messages, p.rate(), p.failed()))
		_ = p.bar.Set64(p.done) // a bar that cannot be drawn does not stop the import
		return
	}
	if now := p.now(); now.Sub(p.printed) >= printEvery {
		p.printed = now
		fmt.Fprintf(p.out, "%.1f of %.1f MB, %d messages, %.0f/s, %s left%s\n",
			float64(p.done)/1e6, float64(p.total)/1e6, p.messages, p.rate(), p.left(), p.failed())
	}
}

// next ends a file of so many bytes.
func (p *progress) next(bytes int64) {
	p.before += bytes
	p.earlier = p.messages
}

func (p *progress) fail() { p.failures++ }

// finish removes the bar.
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
