package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// user has sessions of its own, which nobody else changes. It does everything with them that the API can, one step
// after the other, each until it is answered.
type user struct {
	*rig
	n        int
	key      string
	random   *rand.Rand
	sessions []*conversation // all of one person, as their metadata say
	persons  int
	erased   []*conversation
	asked    int
}

// extras are what a session has besides its messages.
type extras struct {
	uploads map[string][]byte // by ref
	pinned  []*attempt        // whose first message is pinned
}

// step is one thing that a user does with a session, which may be a new one.
type step struct {
	name  string
	often int
	do    func(u *user, ctx context.Context, c *conversation) error
}

// steps are all of them. Most of what a user does is to append.
var steps = []step{
	{"append", 40, (*user).appendTurns},
	{"compact", 8, (*user).compact},
	{"fork", 5, (*user).fork},
	{"upload", 5, (*user).upload},
	{"pin", 4, (*user).pin},
	{"restore a checkpoint", 4, (*user).restore},
	{"change the policy", 3, (*user).changePolicy},
	{"archive", 4, (*user).archive},
	{"recompact", 4, (*user).recompact},
	{"erase", 2, (*user).erase},
	{"erase a person", 1, (*user).erasePerson},
}

// settled bounds how long a user waits for what workers do. Faults keep them from it.
const settled = 3 * time.Minute

// live does one step after the other until ctx ends. A step that has begun is ended.
func (u *user) live(ctx context.Context) {
	total := 0
	for _, s := range steps {
		total += s.often
	}
	for ctx.Err() == nil {
		n := u.random.IntN(total)
		i := slices.IndexFunc(steps, func(s step) bool { n -= s.often; return n < 0 })
		s := steps[i]
		whole := context.WithoutCancel(ctx)
		err := u.begin(whole)
		if err == nil {
			err = s.do(u, whole, u.sessions[u.random.IntN(len(u.sessions))])
		}
		if err != nil {
			u.found.add("step", "user %d, %s: %v", u.n, s.name, err)
		}
		u.found.stepped(s.name)
		sleep(ctx, time.Duration(u.random.IntN(100))*time.Millisecond)
	}
}

// begin makes sessions until there are a few.
func (u *user) begin(ctx context.Context) error {
	for len(u.sessions) < 3 {
		c := u.conversation([]string{chat, anthropic}[u.random.IntN(2)])
		body := object{"format": c.format, "window_tokens": window, "metadata": object{"person": u.person()}}
		if _, err := u.sure(ctx, "PUT", "/v1/sessions/"+c.id, body); err != nil {
			return err
		}
		u.sessions = append(u.sessions, c)
	}
	return nil
}

// conversation returns what will be known of a new session.
func (u *user) conversation(format string) *conversation {
	u.asked++
	return &conversation{
		id: fmt.Sprintf("u%d-%d", u.n, u.asked), format: format, key: u.key, bySeq: map[int64]json.RawMessage{},
		tags: map[string][32]byte{}, refs: map[string]bool{}, extras: extras{uploads: map[string][]byte{}},
	}
}

// person returns whom the metadata of the user's sessions name.
func (u *user) person() string { return fmt.Sprintf("p%d-%d", u.n, u.persons) }

// errRefused is the error of an answer that no fault explains.
var errRefused = errors.New("refused")

// later are the statuses below 500 at which a request is sent again.
var later = []int{http.StatusTooManyRequests, http.StatusRequestTimeout}

// sure sends a request until it succeeds, or has one of the answers that are as good.
func (u *user) sure(ctx context.Context, method, path string, body any, good ...int) (answer, error) {
	u.asked++
	key := fmt.Sprintf("u%d-%d", u.n, u.asked)
	r := request{method: method, path: path, key: u.key, body: body, header: map[string]string{"Idempotency-Key": key}}
	for until := time.Now().Add(settled); ; time.Sleep(time.Duration(50+u.random.IntN(300)) * time.Millisecond) {
		got, err := u.client.do(ctx, r)
		switch {
		case err == nil && (got.status < 300 || slices.Contains(good, got.status)):
			return got, nil
		case err == nil && got.status < 500 && !slices.Contains(later, got.status):
			return got, fmt.Errorf("%s %s: %w: %d %s", method, path, errRefused, got.status, short(got.body))
		case time.Now().After(until):
			return got, fmt.Errorf("%s %s is not answered: %d %s %w", method, path, got.status, short(got.body), err)
		}
	}
}

// until reads something until it is as wanted.
func (u *user) until(ctx context.Context, path string, isSo func(got map[string]any) bool, good ...int) error {
	for until := time.Now().Add(settled); ; time.Sleep(200 * time.Millisecond) {
		got, err := u.sure(ctx, "GET", path, nil, good...)
		if err != nil {
			return err
		}
		var has map[string]any
		if err := json.Unmarshal(got.body, &has); err != nil {
			return err
		}
		if got.status == http.StatusOK && isSo(has) {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("GET %s after %v: %d %s", path, settled, got.status, short(got.body))
		}
	}
}

func isState(names ...string) func(map[string]any) bool {
	return func(has map[string]any) bool {
		state, _ := has["state"].(string)
		return slices.Contains(names, state)
	}
}
