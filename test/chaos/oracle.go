package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ask repeats a request until it is answered: the faults are over.
func (r *rig) ask(ctx context.Context, req request) (answer, error) {
	var last string
	for range 40 {
		got, err := r.client.do(ctx, req)
		if err == nil && got.status < 500 && got.status != http.StatusTooManyRequests {
			return got, nil
		}
		last = fmt.Sprint(got.status, " ", short(got.body), " ", err)
		sleep(ctx, 250*time.Millisecond)
	}
	return answer{}, fmt.Errorf("%s %s is not answered: %s", req.method, req.path, last)
}

// logged is a message of the log as the API answers it.
type logged struct {
	Seq     int64           `json:"seq"`
	Client  *string         `json:"client_id"`
	Message json.RawMessage `json:"message"`
}

// wholeLog reads a session's log.
func (r *rig) wholeLog(ctx context.Context, c *conversation) (log []logged, err error) {
	for next := int64(1); ; {
		got, err := r.ask(ctx, request{
			method: "GET", path: fmt.Sprintf("/v1/sessions/%s/messages?limit=1000&from_seq=%d", c.id, next), key: c.key,
		})
		if err != nil {
			return log, err
		}
		var page struct {
			Data []logged `json:"data"`
			Next *int64   `json:"next_seq"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil {
			return log, fmt.Errorf("log of %s: %w: %s", c.id, err, short(got.body))
		}
		log = append(log, page.Data...)
		if page.Next == nil {
			return log, nil
		}
		next = *page.Next
	}
}

// checkLogs compares every log with what was asked: what was acknowledged is there once, at its seq and in its order;
// what was refused is not; what is not known is there whole or not at all.
func (r *rig) checkLogs(ctx context.Context) error {
	var failed []error
	for _, c := range r.conversations {
		log, err := r.wholeLog(ctx, c)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		r.found.messages += int64(len(log))
		for i, m := range log {
			if m.Seq != int64(i+1) {
				r.found.add("gap", "message %d of %s has seq %d", i+1, c.id, m.Seq)
				break
			}
		}
		r.checkAttempts(c, log)
	}
	return errors.Join(failed...)
}

func (r *rig) checkAttempts(c *conversation, log []logged) {
	starts := map[string][]int{} // where the first message of an append is
	for i, m := range log {
		starts[string(m.Message)] = append(starts[string(m.Message)], i)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	explained, before := 0, map[int]*attempt{} // the last append by writer
	for _, a := range c.attempts {
		at := starts[string(a.messages[0])]
		switch {
		case len(at) > 1:
			r.found.add("doubled", "append %s is at %d of %s", a.id, seqsOf(at), c.id)
		case len(at) == 0 && a.outcome == acked:
			r.found.add("lost", "append %s at %d of %s", a.id, a.first, c.id)
		case len(at) == 1 && a.outcome == refused:
			r.found.add("refused", "append %s is at %d of %s although it was refused", a.id, at[0]+1, c.id)
		case len(at) == 1 && a.outcome == acked && a.first != int64(at[0]+1):
			r.found.add("reordered", "append %s is at %d of %s; %d was acknowledged", a.id, at[0]+1, c.id, a.first)
		}
		if len(at) == 0 {
			continue
		}
		explained += len(a.messages) * len(at)
		r.checkWhole(c, a, log[at[0]:])
		if last := before[a.writer]; a.outcome == acked && last != nil && last.first > a.first {
			r.found.add("reordered", "append %s of %s is before %s, which its writer sent first", a.id, c.id, last.id)
		}
		if a.outcome == acked {
			before[a.writer] = a
		}
	}
	if explained != len(log) {
		r.found.add("foreign", "%s has %d messages, of which appends explain %d", c.id, len(log), explained)
	}
}

// checkWhole checks that an append's messages follow one another.
func (r *rig) checkWhole(c *conversation, a *attempt, log []logged) {
	for i, m := range a.messages {
		if i >= len(log) || !bytes.Equal(log[i].Message, m) {
			r.found.add("half", "append %s of %s: message %d of %d is missing", a.id, c.id, i+1, len(a.messages))
			return
		}
	}
}

func seqsOf(places []int) []int {
	seqs := slices.Clone(places)
	for i := range seqs {
		seqs[i]++
	}
	return seqs
}

// checkResults looks for every ref that was in a view among the persisted results, reads some of both, and compares
// them with the log.
func (r *rig) checkResults(ctx context.Context) error {
	for _, c := range r.conversations {
		log, err := r.wholeLog(ctx, c)
		if err != nil {
			return err
		}
		c.mu.Lock()
		for _, m := range log {
			c.bySeq[m.Seq] = m.Message
		}
		c.mu.Unlock()
		got, err := r.ask(ctx, request{method: "GET", path: "/v1/sessions/" + c.id + "/context", key: c.key})
		if err != nil {
			return err
		}
		lastAck, seen := c.known()
		r.checkView(c, got, "", lastAck, seen)
		c.shownIn(got.body)
		shown := slices.Collect(maps.Keys(c.refs))
		stored, err := r.persisted(ctx, c)
		if err != nil {
			return err
		}
		for _, ref := range shown {
			if !slices.Contains(stored, ref) {
				r.found.add("ref", "%s was in a view of %s and is not among its results", ref, c.id)
			}
		}
		r.checkRefs(ctx, c, append(shown, stored...))
	}
	return nil
}

// readsBack is how many refs of a session are read at the end of a run.
const readsBack = 500

// checkRefs reads what refs stand for: all of them if they are few, else some at random.
func (r *rig) checkRefs(ctx context.Context, c *conversation, all []string) {
	slices.Sort(all)
	all = slices.Compact(all)
	random := rand.New(rand.NewPCG(r.options.seed, 1<<41))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, ref := range all[:min(len(all), readsBack)] {
		answered := r.checkRef(ctx, c, ref)
		if !answered {
			answered = r.checkRef(ctx, c, ref)
		}
		if !answered {
			r.found.add("ref", "%s of %s is not answered", ref, c.id)
		}
	}
}

// persisted returns the refs of a session's results.
func (r *rig) persisted(ctx context.Context, c *conversation) (found []string, err error) {
	cursor := ""
	for {
		got, err := r.ask(ctx, request{
			method: "GET", path: "/v1/sessions/" + c.id + "/results?limit=100" + cursor, key: c.key,
		})
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []struct {
				Ref string `json:"ref"`
			} `json:"data"`
			Next string `json:"next_cursor"`
		}
		if err := json.Unmarshal(got.body, &page); err != nil {
			return nil, err
		}
		for _, result := range page.Data {
			if strings.HasPrefix(result.Ref, "r") {
				found = append(found, result.Ref)
			}
		}
		if page.Next == "" {
			return found, nil
		}
		cursor = "&cursor=" + page.Next
	}
}
