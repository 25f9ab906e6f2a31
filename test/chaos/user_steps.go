package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (u *user) appendTurns(ctx context.Context, c *conversation) error {
	for range 1 + u.random.IntN(3) {
		u.asked++
		id := fmt.Sprintf("u%d-%d", u.n, u.asked)
		a := &attempt{id: id, writer: -2 - u.n, messages: turn(c.format, id, u.random)}
		c.add(a)
		u.append(ctx, c, a, u.random)
	}
	return nil
}

func (u *user) compact(ctx context.Context, c *conversation) error {
	path := "/v1/sessions/" + c.id
	if _, err := u.sure(ctx, "POST", path+"/compact", nil); err != nil {
		return err
	}
	got, err := u.sure(ctx, "GET", path+"/context", nil)
	if err == nil {
		lastAck, seen := c.known()
		u.checkView(c, got, "", lastAck, seen)
		c.shownIn(got.body)
	}
	return err
}

// fork makes a session of what another has through the end of an append.
func (u *user) fork(ctx context.Context, c *conversation) error {
	c.mu.Lock()
	var ends []*attempt
	for _, a := range c.attempts {
		if a.outcome == acked {
			ends = append(ends, a)
		}
	}
	c.mu.Unlock()
	if len(ends) == 0 {
		return nil
	}
	end := ends[u.random.IntN(len(ends))]
	made := u.conversation(c.format)
	seq := end.first + int64(len(end.messages)) - 1
	body := object{"id": made.id, "seq": seq}
	if _, err := u.sure(ctx, "POST", "/v1/sessions/"+c.id+"/fork", body); err != nil {
		return err
	}
	for _, a := range c.attempts {
		if a.outcome == acked && a.first > seq {
			continue
		}
		made.add(a)
		made.settle(a, a.outcome, a.first)
	}
	u.sessions = append(u.sessions, made)
	return u.whole(ctx, made)
}

// upload stores the output of a tool before the message that names it exists.
func (u *user) upload(ctx context.Context, c *conversation) error {
	content := []byte(words(u.random, 100+u.random.IntN(20_000)))
	path := "/v1/sessions/" + c.id + "/results"
	got, err := u.sure(ctx, "POST", path+"?tool=Bash", content, http.StatusConflict)
	for err == nil && got.status == http.StatusConflict { // its beginning is there: the rest is sent
		stored, _ := strconv.Atoi(got.header.Get("Upload-Offset"))
		at := fmt.Sprintf("%s?offset=%d", got.header.Get("Location"), stored)
		got, err = u.sure(ctx, "POST", at, content[min(stored, len(content)):], http.StatusConflict)
	}
	if err != nil {
		return err
	}
	var made struct{ Ref string }
	if err := json.Unmarshal(got.body, &made); err != nil || made.Ref == "" {
		return fmt.Errorf("an upload is answered with %s", short(got.body))
	}
	c.uploads[made.Ref] = content
	return u.sameUpload(ctx, c, made.Ref)
}

func (u *user) sameUpload(ctx context.Context, c *conversation, ref string) error {
	got, err := u.sure(ctx, "GET", "/v1/sessions/"+c.id+"/results/"+ref+"?raw=true", nil)
	if err == nil && !bytes.Equal(got.body, c.uploads[ref]) {
		err = fmt.Errorf("the upload %s of %s has %d other bytes", ref, c.id, len(got.body))
	}
	return err
}

// pin keeps the question of an append in every view.
func (u *user) pin(ctx context.Context, c *conversation) error {
	isNew := func(a *attempt) bool { return a.outcome == acked && !slices.Contains(c.pinned, a) }
	i := slices.IndexFunc(c.attempts, isNew)
	if i < 0 || len(c.pinned) > 3 {
		return nil
	}
	a := c.attempts[i]
	path := fmt.Sprintf("/v1/sessions/%s/pins/m%d", c.id, a.first)
	if _, err := u.sure(ctx, "PUT", path, object{}); err != nil {
		return err
	}
	c.pinned = append(c.pinned, a)
	return u.pinsAreShown(ctx, c)
}

func (u *user) pinsAreShown(ctx context.Context, c *conversation) error {
	got, err := u.sure(ctx, "GET", "/v1/sessions/"+c.id+"/context", nil)
	for _, a := range c.pinned {
		if err == nil && !strings.Contains(string(got.body), "["+a.id+"] ") {
			err = fmt.Errorf("message %d of %s is pinned and not in the view %s", a.first, c.id, short(got.body))
		}
	}
	return err
}

func (u *user) restore(ctx context.Context, c *conversation) error {
	path := "/v1/sessions/" + c.id + "/checkpoints"
	got, err := u.sure(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	var list struct{ Data []struct{ N int64 } }
	if err := json.Unmarshal(got.body, &list); err != nil || len(list.Data) == 0 {
		return err
	}
	n := list.Data[u.random.IntN(len(list.Data))].N
	_, err = u.sure(ctx, "POST", fmt.Sprintf("%s/%d/restore", path, n), nil, http.StatusConflict)
	return err
}

func (u *user) changePolicy(ctx context.Context, c *conversation) error {
	body := object{"target": 0.3 + 0.1*float64(u.random.IntN(4))}
	_, err := u.sure(ctx, "PATCH", "/v1/sessions/"+c.id+"/policy", body)
	return err
}

// archive takes a session out of the database and brings it back.
func (u *user) archive(ctx context.Context, c *conversation) error {
	path := "/v1/sessions/" + c.id
	if _, err := u.sure(ctx, "POST", path+"/archive", nil); err != nil {
		return err
	}
	if u.random.IntN(2) == 0 {
		if err := u.until(ctx, path+"/archive", isState("archived")); err != nil {
			return err
		}
	}
	if _, err := u.sure(ctx, "POST", path+"/unarchive", nil); err != nil {
		return err
	}
	awake := func(map[string]any) bool { return true }
	if err := u.until(ctx, path, awake, http.StatusConflict); err != nil {
		return err
	}
	return u.whole(ctx, c)
}

// whole looks at what a session has.
func (u *user) whole(ctx context.Context, c *conversation) error {
	log, err := u.wholeLog(ctx, c)
	if err != nil {
		return err
	}
	u.checkAttempts(c, log)
	for ref := range c.uploads {
		if err := u.sameUpload(ctx, c, ref); err != nil {
			return err
		}
	}
	return u.pinsAreShown(ctx, c)
}

// recompact compacts the sessions of a person by another policy, and takes that back every other time.
func (u *user) recompact(ctx context.Context, _ *conversation) error {
	body := object{"filter": object{"metadata": object{"person": u.person()}}, "policy": object{"target": 0.2}}
	got, err := u.sure(ctx, "POST", "/v1/admin/recompactions", body)
	if err != nil {
		return err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(got.body, &made); err != nil {
		return err
	}
	path := "/v1/admin/recompactions/" + made.ID
	if err := u.until(ctx, path, isState("done")); err != nil || u.random.IntN(2) == 0 {
		return err
	}
	if _, err := u.sure(ctx, "POST", path+"/rollback", nil); err != nil {
		return err
	}
	return u.until(ctx, path, isState("rolled_back"))
}

func (u *user) erase(ctx context.Context, c *conversation) error {
	if _, err := u.sure(ctx, "DELETE", "/v1/sessions/"+c.id, nil, http.StatusNotFound); err != nil {
		return err
	}
	u.forget(c)
	return u.isGone(ctx, c)
}

func (u *user) forget(c *conversation) {
	u.sessions = slices.DeleteFunc(u.sessions, func(one *conversation) bool { return one == c })
	u.erased = append(u.erased, c)
}

// isGone looks whether a session is gone.
func (u *user) isGone(ctx context.Context, c *conversation) error {
	got, err := u.sure(ctx, "GET", "/v1/sessions/"+c.id, nil, http.StatusNotFound)
	if err == nil && got.status != http.StatusNotFound {
		err = fmt.Errorf("%s is erased, and read: %s", c.id, short(got.body))
	}
	return err
}

// erasePerson erases the sessions of a person, and their forks.
func (u *user) erasePerson(ctx context.Context, _ *conversation) error {
	body := object{"metadata": object{"person": u.person()}}
	got, err := u.sure(ctx, "POST", "/v1/erasures", body)
	if err != nil {
		return err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(got.body, &made); err != nil {
		return err
	}
	if err := u.until(ctx, "/v1/erasures/"+made.ID, isState("done")); err != nil {
		return err
	}
	u.persons++
	for _, c := range slices.Clone(u.sessions) {
		u.forget(c)
		err = errors.Join(err, u.isGone(ctx, c))
	}
	return err
}
