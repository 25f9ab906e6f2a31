package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	messageBytes   = 1024
	writerSessions = 16 // that each writer appends to by turns
	maxWriters     = 32
	hotSession     = maxWriters * writerSessions // the id of the session that all writers share
)

// appendCase is one way to append.
type appendCase struct {
	name              string
	messages, writers int
	oneSession        bool
	goal              string
	clockGoals        []string // of the API's and PostgreSQL's processor time
}

var appendCases = []appendCase{
	{"append, 1 message, 1 writer", 1, 1, false, ">= 0.4", nil},
	{"append, 1 message, 8 writers on sessions of their own", 1, 8, false, ">= 0.4", nil},
	{"append, 1 message, 32 writers on sessions of their own", 1, 32, false, ">= 0.9", []string{"<= 0.15", "<= 0.2"}},
	{"append, 1 message, 8 writers on one session", 1, 8, true, notSet, nil},
	{"append, 10 messages, 1 writer", 10, 1, false, "", nil},
	{"append, 10 messages, 8 writers on sessions of their own", 10, 8, false, "", nil},
	{"append, 10 messages, 32 writers on sessions of their own", 10, 32, false, "", nil},
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

// appendLoads returns appends over HTTP, beside a plain INSERT and UPDATE.
func appendLoads(b *bench) []loadCase {
	if b.against == "" {
		b.note("append: the floor is a plain INSERT and UPDATE in one transaction, from a bare pgx loop")
	}
	var cases []loadCase
	for _, a := range appendCases {
		cases = append(cases, loadCase{
			name: a.name, unit: "appends/s", goal: a.goal, prepare: prepareAppends, clockGoals: a.clockGoals,
			round: func(s *site) (sample, error) { return s.appends(a), nil },
			floor: func() (sample, error) { return b.plainFloor(a) },
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
	body := appendBody(a.bodies())
	return func(ctx context.Context, d time.Duration) (float64, error) {
		answered := make([]seqs, a.writers)
		rate, err := load(ctx, d, a.writers, func(writer int) func() error {
			c := s.newClient()
			answered[writer] = seqs{}
			turn := 0
			return func() error {
				id := a.session(writer, turn)
				turn++
				return c.appendTo(id, body, answered[writer])
			}
		})
		if err != nil {
			return 0, err
		}
		return rate, checkDense(answered, a.messages)
	}
}

// appendTo appends to a session and notes the first seq of the answer.
func (c *client) appendTo(id int, body []byte, answered seqs) error {
	if err := c.send("POST", sessionPath(strconv.Itoa(id))+"/messages", body, http.StatusCreated); err != nil {
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
