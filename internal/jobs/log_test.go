package jobs_test

import (
	"bytes"
	"sync"
)

// log keeps what a worker logs, besides writing it to the test's output.
type log struct {
	w *world

	mu   sync.Mutex
	text bytes.Buffer
}

func (w *world) newLog() *log { return &log{w: w} }

// Write adds a line.
func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(line)
	return l.w.Output().Write(line)
}

// count returns how often a text is in the log.
func (l *log) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// line returns the first line with all of these texts, "" if there is none.
func (l *log) line(texts ...string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text.Bytes()) {
		has := true
		for _, text := range texts {
			has = has && bytes.Contains(line, []byte(text))
		}
		if has {
			return string(line)
		}
	}
	return ""
}
