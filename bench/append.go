package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

const (
	messageBytes   = 1024
	writerSessions = 16 // that each writer appends to by turns
	maxWriters     = 32
	hotSession     = maxWriters * writerSessions // the id of the session that all writers share
)

// appendCase is one way to append.
type appendCase struct {
	writers, messages int
	oneSession        bool
	goal              *goal
}

var appendCases = []appendCase{
	{writers: 1, messages: 1},
	{writers: 8, messages: 1, goal: atLeast(0.4)},
	{writers: 32, messages: 1, goal: atLeast(0.5)},
	{writers: 8, messages: 1, oneSession: true, goal: atLeast(0.6)},
	{writers: 1, messages: 10},
	{writers: 8, messages: 10},
	{writers: 32, messages: 10},
}

func (a appendCase) name() string {
	what, where := "1 message", "on sessions of their own"
	if a.messages > 1 {
		what = fmt.Sprintf("%d messages", a.messages)
	}
	if a.oneSession {
		where = "on one session"
	}
	if a.writers == 1 {
		return fmt.Sprintf("append, %s, 1 writer", what)
	}
	return fmt.Sprintf("append, %s, %d writers %s", what, a.writers, where)
}

// session returns the id that a writer appends to at its turn.
func (a appendCase) session(writer, turn int) int {
	if a.oneSession {
		return hotSession
	}
	return writer*writerSessions + turn%writerSessions
}

func (a appendCase) bodies() [][]byte {
	messages := make([][]byte, a.messages)
	for i := range messages {
		messages[i] = newCorpus(uint64(i) + 1).message(messageBytes)
	}
	return messages
}

// appendCases returns the cases that are to be measured.
func (b *bench) appendCases() []appendCase {
	return slices.DeleteFunc(slices.Clone(appendCases), func(a appendCase) bool { return !b.wants(a.name()) })
}

// measureAppends compares appends over HTTP with the same statement in a bare loop, on the same sessions by turns.
func measureAppends(ctx context.Context, b *bench) error {
	cases := b.appendCases()
	if len(cases) == 0 {
		return nil
	}
	if err := b.here.prepareAppends(ctx); err != nil {
		return err
	}
	for _, a := range cases {
		c := comparison{
			name: a.name(), unit: "appends/s", goal: a.goal, ours: b.here.appends(a), floor: b.appendFloor(a),
		}
		if err := b.compare(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", a.name(), err)
		}
	}
	return nil
}

// prepareAppends makes the sessions that all cases append to.
func (s *site) prepareAppends(ctx context.Context) error {
	c := s.newClient()
	for id := range hotSession + 1 {
		if err := c.createSession(strconv.Itoa(id)); err != nil {
			return err
		}
	}
	return s.unbound(ctx)
}

// appends returns a round over HTTP. Every answer must be a 201.
func (s *site) appends(a appendCase) sample {
	clients, body := s.newClients(a.writers), appendBody(a.bodies())
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, a.writers, func(writer int) func() error {
			c, turn := clients[writer], 0
			requests := make([][]byte, writerSessions)
			for i := range requests {
				requests[i] = c.request("POST", sessionPath(strconv.Itoa(a.session(writer, i)))+"/messages", body)
			}
			return func() error {
				turn++
				return c.call(requests[turn%len(requests)], http.StatusCreated)
			}
		})
	}
}

// appendFloor returns a round of the store's own statement.
func (b *bench) appendFloor(a appendCase) sample {
	var messages []session.NewMessage
	for _, body := range a.bodies() {
		messages = append(
			messages, session.NewMessage{Body: body, Role: "user", Tokens: len(body) / 4, StartsUnit: true},
		)
	}
	return b.pgxFloor(a.writers, func(writer, turn int) statement {
		at := session.Address{Tenant: b.here.tenant, ID: strconv.Itoa(a.session(writer, turn))}
		sql, args := postgres.AppendStatement(
			session.Append{Session: at, Format: session.OpenAIChat, Messages: messages},
		)
		return statement{sql, args}
	})
}
