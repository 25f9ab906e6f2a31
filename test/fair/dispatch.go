package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	requestedCompactions = "300 requested compactions"
	requested            = 300
	workers              = 4 // of varve up, unless it is told otherwise
)

var errLate = errors.New("a compaction waits behind too many of another tenant's")

// measureDispatch has the attacker request compactions of all of its sessions, and the victim's session cross its
// trigger meanwhile. It prints how many of the attacker's started before the victim's.
func (s *server) measureDispatch() error {
	if err := s.prepareCompactions(); err != nil {
		return err
	}
	failures := make(chan error, requested)
	var group sync.WaitGroup
	for first := range 16 {
		group.Go(func() {
			for n := first; n < requested; n += 16 {
				failures <- s.must(s.attacker, "POST", fmt.Sprintf("/v1/sessions/many-%d/compact", n), "")
			}
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return err
		}
	}
	if err := s.must(s.victim, "POST", "/v1/sessions/crossing/messages", results("crossing", 2)); err != nil {
		return err
	}
	before, waiting, err := s.startedBefore()
	if err != nil {
		return err
	}
	fmt.Printf("%-36s %d of the attacker's %d that had not started did so before the victim's, at most %d may\n",
		requestedCompactions, before, waiting, 2*workers)
	if before > 2*workers || waiting < 4*workers {
		return errLate
	}
	return nil
}

// prepareCompactions makes the attacker's sessions, and one of the victim just below its trigger.
func (s *server) prepareCompactions() error {
	for n := range requested {
		at := fmt.Sprintf("/v1/sessions/many-%d", n)
		if err := s.must(s.attacker, "PUT", at, `{"format":"openai-chat","window_tokens":1000000}`); err != nil {
			return err
		}
		if err := s.must(s.attacker, "POST", at+"/messages", results(at, 40)); err != nil {
			return err
		}
	}
	settings := `{"format":"openai-chat","window_tokens":20000}`
	if err := s.must(s.victim, "PUT", "/v1/sessions/crossing", settings); err != nil {
		return err
	}
	return s.must(s.victim, "POST", "/v1/sessions/crossing/messages", results("start", 4))
}

// results returns an append of calls with results of 10 kB.
func results(prefix string, calls int) string {
	messages := []map[string]any{{"role": "user", "content": "read them"}}
	for n := range calls {
		id := fmt.Sprintf("%s-%d", prefix, n)
		read := map[string]any{"name": "read", "arguments": fmt.Sprintf(`{"path":"f%d"}`, n)}
		call := map[string]any{"id": id, "type": "function", "function": read}
		text := strings.Repeat(fmt.Sprintf("line %d\n", n), 1400)
		messages = append(messages,
			map[string]any{"role": "assistant", "tool_calls": []any{call}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": text})
	}
	body, _ := json.Marshal(map[string]any{"messages": messages}) // plain values
	return string(body)
}

// startedBefore returns how many of the attacker's compactions started between the moment at which the victim's was
// asked for and that at which it started, and how many had not started at the first of these.
func (s *server) startedBefore() (before, waiting int, err error) {
	conn, err := s.database()
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(context.Background())
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		err = conn.QueryRow(context.Background(), dispatched).Scan(&before, &waiting)
		if !errors.Is(err, pgx.ErrNoRows) {
			return before, waiting, err
		}
	}
	return 0, 0, errors.New("the victim's compaction has not started after a minute")
}

const dispatched = `
		WITH victim AS (
		     SELECT j.created_at, j.attempted_at, j.args ->> 'tenant' AS tenant
		       FROM river_job j
		       JOIN sessions s ON s.key::text = j.args ->> 'session'
		      WHERE j.kind = 'compact' AND s.id = 'crossing'
		      ORDER BY j.id
		      LIMIT 1)
		SELECT count(*) FILTER (WHERE j.attempted_at < v.attempted_at),
		       count(*)
		  FROM river_job j, victim v
		 WHERE j.kind = 'compact' AND j.args ->> 'tenant' <> v.tenant
		   AND coalesce(j.attempted_at, 'infinity') > v.created_at
		HAVING bool_and(v.attempted_at IS NOT NULL)`
