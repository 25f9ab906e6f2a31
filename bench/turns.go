package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	turnRow     = "turn, append and view in one call, beside two calls"
	turnBase    = 100  // messages that a session has before its turns
	turnBytes   = 1000 // of the answer of a tool
	turnsOfEach = 100  // of a session; then there is another one
)

// turns has a program take turns: each appends an answer and reads the view that the next request needs.
type turns struct {
	site  *site
	name  string
	once  bool // by one call
	made  int  // sessions
	took  int  // turns of the newest
	texts *corpus

	append, view []time.Duration // what the calls took; by one call, append has both
}

// round takes turns for a while and returns how many a second there were.
func (t *turns) round(ctx context.Context, d time.Duration) (float64, error) {
	c := t.site.newClient()
	return load(ctx, d, 1, func(int) func() error {
		return func() error { return t.take(c) }
	})
}

func (t *turns) take(c *client) error {
	if t.took%turnsOfEach == 0 {
		t.made++
		if err := c.createSession(t.id()); err != nil {
			return err
		}
		if err := c.appendAll(t.id(), t.texts.conversation(turnBase, turnBytes)); err != nil {
			return err
		}
	}
	t.took++
	at, body := sessionPath(t.id()), appendBody(t.texts.turn(turnBytes))
	began := time.Now()
	if t.once {
		err := c.send("POST", at+"/messages?return=context", body, http.StatusCreated)
		t.append = append(t.append, time.Since(began))
		return err
	}
	if err := c.send("POST", at+"/messages", body, http.StatusCreated); err != nil {
		return err
	}
	t.append = append(t.append, time.Since(began))
	began = time.Now()
	err := c.send("GET", at+"/context", nil, http.StatusOK)
	t.view = append(t.view, time.Since(began))
	return err
}

func (t *turns) id() string { return fmt.Sprint(t.name, " ", t.made) }

// measureTurns measures turns by one call beside turns by two: their rate, their processor time, and how long a call
// takes.
func measureTurns(ctx context.Context, b *bench) error {
	if !b.match.MatchString(turnRow) {
		return nil
	}
	b.progress("%s", turnRow)
	one := &turns{site: b.here, name: "one call", once: true, texts: newCorpus(1)}
	two := &turns{site: b.here, name: "two calls", texts: newCorpus(1)}
	ours, theirs := b.here.clocks(), b.here.clocks()
	rates, err := alternate(ctx, b.rounds, b.round, timed(one.round, ours), timed(two.round, theirs))
	if err != nil {
		return err
	}
	b.add(row{Name: turnRow, Unit: "turns/s", Goal: ">= 1"}.pairs(rates[0], rates[1]))
	for i, clock := range ours {
		if len(clock.rates) > 1 { // the first turn warms
			r := row{Name: turnRow, Unit: "turns/s of " + clock.of, Goal: ">= 1"}
			b.add(r.pairs(clock.rates[1:], theirs[i].rates[1:]))
		}
	}
	slower := max(middle(two.append), middle(two.view))
	b.add(row{Name: turnRow + ": the middle call beside the slower of the two", Unit: "ms", Value: middle(one.append),
		Goal: "<= 1.3"}.beside(slower))
	return nil
}

// middle returns the median in ms.
func middle(took []time.Duration) float64 {
	slices.Sort(took)
	return took[len(took)/2].Seconds() * 1000
}
