package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/session"
)

// attack is work of many clients at once.
type attack struct {
	name    string
	clients int
	prepare func(s *server) (release func(), err error)
	send    func(ctx context.Context, s *server) (status int, err error)
}

var attacks = []attack{
	{"100 writers on one locked session", 100, lockSession, func(ctx context.Context, s *server) (int, error) {
		return s.ask(ctx, s.attacker, "POST", "/v1/sessions/locked/messages", message("hello"))
	}},
	{"1,000 x compact?wait=60", 1000, makeSession("waited"), func(ctx context.Context, s *server) (int, error) {
		return s.ask(ctx, s.attacker, "POST", "/v1/sessions/waited/compact?wait=60", nil)
	}},
	{"20 readers of a view of 28 MB", 20, largeSession, func(ctx context.Context, s *server) (int, error) {
		return s.ask(ctx, s.attacker, "GET", "/v1/sessions/large/context", nil)
	}},
	{"512 connections with invented keys", 512, nothing, func(ctx context.Context, s *server) (int, error) {
		return s.ask(ctx, session.NewAPIKey(uuid.New()), "GET", "/v1/sessions", nil)
	}},
	{"8 exact counts of 8 MB", 8, nothing, func(ctx context.Context, s *server) (int, error) {
		return s.ask(ctx, s.attacker, "POST", "/v1/tokens", counted)
	}},
}

func nothing(*server) (func(), error) { return func() {}, nil }

func makeSession(id string) func(s *server) (func(), error) {
	return func(s *server) (func(), error) {
		err := s.must(s.attacker, "PUT", "/v1/sessions/"+id, `{"format":"openai-chat"}`)
		if err == nil {
			err = s.must(s.attacker, "POST", "/v1/sessions/"+id+"/messages", string(message("hello")))
		}
		return func() {}, err
	}
}

// lockSession makes a session, and holds its lock as somebody beside Varve would.
func lockSession(s *server) (func(), error) {
	if _, err := makeSession("locked")(s); err != nil {
		return nil, err
	}
	url, err := embedded.Running(s.dir, embedded.User)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(context.Background(), `BEGIN; SELECT FROM sessions WHERE id = 'locked' FOR UPDATE`)
	return func() { _ = conn.Close(context.Background()) }, err
}

// largeSession makes a session whose view has 28 MB.
func largeSession(s *server) (func(), error) {
	err := s.must(s.attacker, "PUT", "/v1/sessions/large", `{"format":"openai-chat","window_tokens":10000000}`)
	for n := 0; err == nil && n < 7; n++ {
		body := message(strings.Repeat("large view ", 4<<20/11))
		err = s.must(s.attacker, "POST", "/v1/sessions/large/messages", string(body))
	}
	return func() {}, err
}

func message(text string) []byte {
	body, _ := json.Marshal(map[string]any{ // plain values
		"messages": []map[string]string{{"role": "user", "content": text}},
	})
	return body
}

var counted = fmt.Appendf(nil, `{"format":"openai-chat","model":"gpt-4o","messages":[{"role":"user","content":%q}]}`,
	strings.Repeat("a", 8_000_000))
