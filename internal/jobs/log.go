package jobs

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// outage knows whether the database answers, and says so: when it goes, once a minute, and when it is back.
type outage struct {
	log *slog.Logger

	mu     sync.Mutex
	since  time.Time // zero: it answers
	logged time.Time
}

// sayEvery is how often a message is logged that comes again and again.
const sayEvery = time.Minute

// note records whether the database answered.
func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && o.since.IsZero():
	case err == nil:
		o.log.Warn("the database answers again", "away_seconds", int(now.Sub(o.since).Seconds()))
		o.since, o.logged = time.Time{}, time.Time{}
	case now.Sub(o.logged) >= sayEvery:
		if o.since.IsZero() {
			o.since = now
		}
		o.log.Error("the database does not answer: jobs wait until it does",
			"away_seconds", int(now.Sub(o.since).Seconds()), "error", err)
		o.logged = now
	}
}

func (o *outage) isOn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero()
}

// riverLog returns the logger for River's own messages: warnings and worse, because it reports every few seconds that
// all is well. While the database is away they say nothing that the outage does not; otherwise each is logged once a
// minute.
func riverLog(log *slog.Logger, away *outage) *slog.Logger {
	return slog.New(damped{Handler: log.Handler(), away: away, said: &said{at: map[string]time.Time{}}})
}

type damped struct {
	slog.Handler
	away *outage
	said *said
}

// said knows when each message was logged last. There are as many as River has texts.
type said struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (s *said) lately(message string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.at[message]) < sayEvery {
		return true
	}
	s.at[message] = now
	return false
}

// Enabled reports whether the level is that of a warning or worse.
func (h damped) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// Handle drops what fails because the process is stopping or the database is away, and what was said lately.
func (h damped) Handle(ctx context.Context, r slog.Record) error {
	stopping := false
	r.Attrs(func(a slog.Attr) bool {
		stopping = stopping || strings.HasSuffix(a.Value.String(), context.Canceled.Error())
		return !stopping
	})
	if stopping || h.away.isOn() || h.said.lately(r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the damping.
func (h damped) WithAttrs(attrs []slog.Attr) slog.Handler {
	return damped{Handler: h.Handler.WithAttrs(attrs), away: h.away, said: h.said}
}

// WithGroup keeps the damping.
func (h damped) WithGroup(name string) slog.Handler {
	return damped{Handler: h.Handler.WithGroup(name), away: h.away, said: h.said}
}
