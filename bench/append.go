package main

import (
	"context"
	"encoding/json"
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
	goal              string
}

// The goals were set for a floor of pgbench. They are to be set anew from a run of everything on a quiet machine.
var appendCases = []appendCase{
	{writers: 1, messages: 1},
	{writers: 8, messages: 1, goal: notSet},
	{writers: 32, messages: 1, goal: notSet},
	{writers: 8, messages: 1, oneSession: true, goal: notSet},
	{writers: 1, messages: 10},
	{writers: 8, messages: 10},
	{writers: 32, messages: 10},
}

func (a appendCase) name() string {
	what := "1 message"
	if a.messages > 1 {
		what = fmt.Sprintf("%d messages", a.messages)
	}
	where := "on sessions of their own"
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

// bodies returns the messages of each append.
func (a appendCase) bodies() [][]byte {
	messages := make([][]byte, a.messages)
	for i := range messages {
		messages[i] = newCorpus(uint64(i) + 1).message(messageBytes)
	}
	return messages
}

// appendLoads returns appends over HTTP, beside the same statement in a bare loop on the same sessions.
func appendLoads(b *bench) []loadCase {
	if b.against == "" {
		b.note("append: the floor is the store's own statement in a bare pgx loop; before, it was pgbench, which is " +
			"faster. A goal is set when a quiet machine has measured this floor")
	}
	var cases []loadCase
	for _, a := range appendCases {
		cases = append(cases, loadCase{
			name: a.name(), unit: "appends/s", goal: a.goal, prepare: prepareAppends,
			round: func(s *site) (sample, error) { return s.appends(a), nil },
			floor: func() (sample, error) { return b.appendFloor(a), nil },
		})
	}
	return cases
}

// prepareAppends makes the sessions that all cases append to.
func prepareAppends(ctx context.Context, s *site) error {
	c := s.newClient()
	for id := range hotSession + 1 {
		if name := strconv.Itoa(id); !s.made[name] {
			s.made[name] = true
			if err := c.createSession(name); err != nil {
				return err
			}
		}
	}
	return s.unbound(ctx)
}

// appends returns a round over HTTP. Every answer must be a 201, and the seqs answered for a session must be dense.
func (s *site) appends(a appendCase) sample {
	clients := s.newClients(a.writers)
	body := appendBody(a.bodies())
	return func(ctx context.Context, d time.Duration) (float64, error) {
		answered := make([]seqs, a.writers)
		rate, err := load(ctx, d, a.writers, func(writer int) func() error {
			answered[writer] = seqs{}
			return s.writer(clients[writer], a, writer, body, answered[writer])
		})
		if err != nil {
			return 0, err
		}
		return rate, checkDense(answered, a.messages)
	}
}

// writer returns what one writer repeats.
func (s *site) writer(c *client, a appendCase, writer int, body []byte, answered seqs) func() error {
	requests := make([][]byte, writerSessions)
	for i := range requests {
		requests[i] = c.request("POST", sessionPath(strconv.Itoa(a.session(writer, i)))+"/messages", body)
	}
	turn := 0
	return func() error {
		id := a.session(writer, turn)
		request := requests[turn%len(requests)]
		turn++
		if err := c.call(request, http.StatusCreated); err != nil {
			return err
		}
		var answer struct {
			First int64 `json:"first_seq"`
		}
		if err := json.Unmarshal(c.body.Bytes(), &answer); err != nil {
			return fmt.Errorf("answer to an append %q: %w", c.body.Bytes(), err)
		}
		answered[id] = append(answered[id], answer.First)
		return nil
	}
}

// seqs are the first seqs that appends were answered with, by session.
type seqs map[int][]int64

// checkDense returns an error for a seq of a session that was given twice or left out.
func checkDense(answered []seqs, messages int) error {
	all := seqs{}
	for _, some := range answered {
		for id, list := range some {
			all[id] = append(all[id], list...)
		}
	}
	for id, list := range all {
		slices.Sort(list)
		for i := 1; i < len(list); i++ {
			if list[i] != list[i-1]+int64(messages) {
				return fmt.Errorf("session %d: appends of %d messages were answered with the first seqs %d and %d",
					id, messages, list[i-1], list[i])
			}
		}
	}
	return nil
}

// appendFloor returns a round of the store's own statement.
func (b *bench) appendFloor(a appendCase) sample {
	var messages []session.NewMessage
	for _, body := range a.bodies() {
		messages = append(messages, session.NewMessage{
			Body: body, Role: "user", Tokens: len(body) / 4, StartsUnit: true,
		})
	}
	return b.pgxFloor(a.writers, func(writer, turn int) statement {
		at := session.Address{Tenant: b.here.tenant, ID: strconv.Itoa(a.session(writer, turn))}
		sql, args := postgres.AppendStatement(
			session.Append{Session: at, Format: session.OpenAIChat, Messages: messages},
		)
		return statement{sql, args}
	})
}
