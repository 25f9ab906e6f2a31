package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	messageBytes   = 1024
	writerSessions = 16 // that each writer takes turns with
	mostWriters    = 32
	hotSession     = mostWriters * writerSessions // the id of the one that all write to
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
	writers := fmt.Sprintf("%d writers", a.writers)
	if a.writers == 1 {
		return fmt.Sprintf("append, %s, 1 writer", what)
	}
	return fmt.Sprintf("append, %s, %s %s", what, writers, where)
}

// measureAppends compares appends over HTTP with the same statement from pgbench, on the same sessions by turns.
func measureAppends(ctx context.Context, b *bench) error {
	cases := slices.DeleteFunc(slices.Clone(appendCases), func(a appendCase) bool { return !b.wants(a.name()) })
	if len(cases) == 0 {
		return nil
	}
	setUp := b.newClient()
	for id := range hotSession + 1 {
		if err := setUp.createSession(strconv.Itoa(id)); err != nil {
			return err
		}
	}
	if err := b.unbound(ctx); err != nil {
		return err
	}
	for _, a := range cases {
		messages := make([][]byte, a.messages)
		for i := range messages {
			messages[i] = newCorpus(uint64(i) + 1).message(messageBytes)
		}
		floor, err := b.appendFloor(ctx, a, messages)
		if err != nil {
			return err
		}
		clients, body := b.newClients(a.writers), appendBody(messages)
		ours := func(ctx context.Context, d time.Duration) (float64, error) {
			return b.appends(ctx, d, a, clients, body)
		}
		if err := b.compare(ctx, comparison{name: a.name(), unit: "appends/s", goal: a.goal, ours: ours, floor: floor}); err != nil {
			return fmt.Errorf("%s: %w", a.name(), err)
		}
	}
	return nil
}

// appends is a round over HTTP. Every answer must be a 201; on one session, the seqs answered must be dense.
func (b *bench) appends(ctx context.Context, d time.Duration, a appendCase, clients []*client, body []byte) (float64, error) {
	var seqs collector
	rate, err := load(ctx, d, a.writers, func(writer int) func() error {
		c, paths, turn := clients[writer], appendPaths(a, writer), 0
		c.request.Header.SetMethod(fasthttp.MethodPost)
		c.request.Header.SetContentType("application/json")
		c.request.SetBodyRaw(body)
		return func() error {
			c.request.SetRequestURI(paths[turn%len(paths)])
			turn++
			if err := c.call(fasthttp.StatusCreated); err != nil {
				return err
			}
			if !a.oneSession {
				return nil
			}
			return seqs.add(c.response.Body())
		}
	})
	if err != nil {
		return 0, err
	}
	return rate, seqs.dense(int64(a.messages))
}

func appendPaths(a appendCase, writer int) []string {
	if a.oneSession {
		return []string{sessionPath(strconv.Itoa(hotSession)) + "/messages"}
	}
	paths := make([]string, writerSessions)
	for i := range paths {
		paths[i] = sessionPath(strconv.Itoa(writer*writerSessions+i)) + "/messages"
	}
	return paths
}

// collector keeps the first seqs that appends to one session were answered with.
type collector struct {
	mu    sync.Mutex
	first []int64
}

var firstSeq = []byte(`"first_seq":`)

func (s *collector) add(answer []byte) error {
	_, rest, _ := bytes.Cut(answer, firstSeq)
	digits, _, _ := bytes.Cut(rest, []byte(","))
	seq, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 10, 64)
	if err != nil {
		return fmt.Errorf("answer to an append %q: %w", answer, err)
	}
	s.mu.Lock()
	s.first = append(s.first, seq)
	s.mu.Unlock()
	return nil
}

// dense reports a seq that was given twice or left out.
func (s *collector) dense(step int64) error {
	slices.Sort(s.first)
	for i := 1; i < len(s.first); i++ {
		if s.first[i] != s.first[i-1]+step {
			return fmt.Errorf("one session: seq %d was followed by %d", s.first[i-1], s.first[i])
		}
	}
	return nil
}
