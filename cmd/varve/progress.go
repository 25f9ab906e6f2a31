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

// meter shows how far work is: by a bar on a terminal, else by a line every ten seconds.
type meter struct {
	out     io.Writer
	bar     *progressbar.ProgressBar // nil if out is not a terminal
	now     func() time.Time
	printed time.Time
}

// printEvery is how often a line of progress is printed where no bar can be drawn.
const printEvery = 10 * time.Second

// newMeter returns a meter of a total in the unit that counts shows, -1 if the total is not known yet.
func newMeter(out *os.File, total int64, counts progressbar.Option) meter {
	m := meter{out: out, now: time.Now, printed: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		m.bar = progressbar.NewOptions64(total, counts, progressbar.OptionSetWriter(out),
			progressbar.OptionSetWidth(24), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	return m
}

// update draws the bar beside text, or prints a line if it is time for one. A bar that cannot be drawn stops nothing.
func (m *meter) update(done, total int64, text, line string) {
	now := m.now()
	switch {
	case m.bar != nil:
		if total > 0 {
			m.bar.ChangeMax64(total)
			done = min(done, total-1) // a bar at its end disappears
		}
		_ = m.bar.Set64(done)
		m.bar.Describe(text)
	case now.Sub(m.printed) >= printEvery:
		m.printed = now
		fmt.Fprintln(m.out, line)
	}
}

// finish removes the bar.
func (m *meter) finish() {
	if m.bar != nil {
		_ = m.bar.Finish()
	}
}

// progress shows how far the import of several files is.
type progress struct {
	meter
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
	return &progress{meter: newMeter(out, limit, progressbar.OptionShowBytes(true)), total: total, started: time.Now()}
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
	elapsed := p.now().Sub(p.started)
	remaining := time.Duration(0)
	if done > 0 && p.total > 0 {
		remaining = time.Duration(float64(elapsed) * float64(p.total-done) / float64(done)).Round(time.Second)
	}
	rate := float64(p.messages) / max(elapsed.Seconds(), 0.001)
	p.update(done, p.total, fmt.Sprintf("%.1f MB read, %d messages (%.0f/s)%s", float64(p.read)/1e6, p.messages, rate,
		failed),
		fmt.Sprintf("%.1f of %.1f MB, %d messages, %.0f/s, %s left%s",
			float64(done)/1e6, float64(p.total)/1e6, p.messages, rate, remaining, failed))
}

// next ends a file of a number of bytes.
func (p *progress) next(bytes int64) {
	p.before += bytes
	p.earlier = p.messages
}
