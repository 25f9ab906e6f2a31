package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Meter shows how far work is: by a bar on a terminal, else by a line every ten seconds.
type Meter struct {
	Out     io.Writer
	bar     *progressbar.ProgressBar // nil if out is not a terminal
	Now     func() time.Time
	Printed time.Time
}

// printEvery is how often a line of progress is printed where no bar can be drawn.
const printEvery = 10 * time.Second

// FollowEvery is how often work that is followed is read.
const FollowEvery = 500 * time.Millisecond

// NewMeter returns a meter of a total in the unit that counts shows, -1 if the total is not known yet.
func NewMeter(out *os.File, total int64, counts progressbar.Option) Meter {
	m := Meter{Out: out, Now: time.Now, Printed: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		m.bar = progressbar.NewOptions64(total, counts, progressbar.OptionSetWriter(out),
			progressbar.OptionSetWidth(24), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	return m
}

// Update draws the bar beside text, or prints a line if it is time for one. A bar that cannot be drawn stops nothing.
func (m *Meter) Update(done, total int64, text, line string) {
	now := m.Now()
	switch {
	case m.bar != nil:
		if total > 0 {
			m.bar.ChangeMax64(total)
			done = min(done, total-1) // a bar at its end disappears
		}
		_ = m.bar.Set64(done)
		m.bar.Describe(text)
	case now.Sub(m.Printed) >= printEvery:
		m.Printed = now
		fmt.Fprintln(m.Out, line)
	}
}

// Finish removes the bar.
func (m *Meter) Finish() {
	if m.bar != nil {
		_ = m.bar.Finish()
	}
}
