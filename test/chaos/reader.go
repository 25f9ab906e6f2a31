package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// servedView is a view as the API answers it.
type servedView struct {
	Checkpoint int64             `json:"checkpoint"`
	Through    int64             `json:"through_seq"`
	LastSeq    int64             `json:"last_seq"`
	Degraded   bool              `json:"degraded"`
	Repairs    []json.RawMessage `json:"repairs"`
	Messages   []json.RawMessage `json:"messages"`
}

// read reads views until ctx ends, and now and then what a ref in one stands for.
func (r *rig) read(ctx context.Context, reader int) {
	random := rand.New(rand.NewPCG(r.options.seed, uint64(1<<20+reader)))
	tags := map[string]string{} // by session: the newest that this reader has
	for ctx.Err() == nil {
		c := r.conversations[random.IntN(len(r.conversations))]
		req := request{method: "GET", path: "/v1/sessions/" + c.id + "/context", key: c.key}
		if random.IntN(2) == 0 && tags[c.id] != "" {
			req.header = map[string]string{"If-None-Match": tags[c.id]}
		}
		lastAck, seen := c.known()
		got, err := r.client.do(ctx, req)
		if err == nil {
			if tag := r.checkView(c, got, req.header["If-None-Match"], lastAck, seen); tag != "" {
				tags[c.id] = tag
			}
			r.readBack(ctx, c, c.shownIn(got.body), random)
		}
		sleep(ctx, time.Duration(random.IntN(40))*time.Millisecond)
	}
}

// checkView checks one answer, and returns its ETag if it is whole. lastAck and seen are what was known before it was
// asked for.
func (r *rig) checkView(c *conversation, got answer, had string, lastAck int64, seen shown) string {
	tag := got.header.Get("ETag")
	switch {
	case got.status == http.StatusNotModified:
		r.found.unchanged.Add(1)
		if tag != had {
			r.found.add("etag", "%s: 304 of %s for %s", c.id, tag, had)
		}
		return tag
	case got.status != http.StatusOK:
		return ""
	}
	r.found.views.Add(1)
	var v servedView
	if err := json.Unmarshal(got.body, &v); err != nil {
		r.found.add("invalid", "view of %s is no JSON: %v", c.id, err)
		return ""
	}
	if v.LastSeq < lastAck || v.LastSeq < seen.lastSeq {
		r.found.add("stale", "view of %s ends at %d; %d was acknowledged and %d was served before", c.id, v.LastSeq,
			lastAck, seen.lastSeq)
	}
	if v.Checkpoint < seen.checkpoint && !v.Degraded {
		r.found.add("stale", "view of %s has checkpoint %d; %d was served before", c.id, v.Checkpoint, seen.checkpoint)
	}
	if v.Degraded {
		r.found.add("degraded", "view of %s", c.id)
	}
	for _, problem := range invalid(c.format, v.Messages) {
		r.found.add("invalid", "view of %s, checkpoint %d, last seq %d: %s", c.id, v.Checkpoint, v.LastSeq, problem)
	}
	r.checkTail(c, v)
	c.remember(r.found, tag, got.body, v)
	return tag
}

// checkTail compares what a view has after its checkpoint with what was appended.
func (r *rig) checkTail(c *conversation, v servedView) {
	tail := v.LastSeq - v.Through
	if len(v.Repairs) > 0 || tail > int64(len(v.Messages)) {
		r.found.add("tail", "view of %s has %d messages, of which %d are its tail, and repairs %s", c.id,
			len(v.Messages), tail, v.Repairs)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range v.Messages[int64(len(v.Messages))-tail:] {
		seq := v.Through + 1 + int64(i)
		if written, ok := c.bySeq[seq]; ok && !bytes.Equal(written, m) {
			r.found.add("tail", "view of %s: message %d is not what was appended: %s", c.id, seq, short(m))
			return
		}
	}
}

// remember compares what an ETag stands for with what it stood for before, and what was seen with what is.
func (c *conversation) remember(found *findings, tag string, body []byte, v servedView) {
	sum := sha256.Sum256(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.tags[tag]; ok && before != sum {
		found.add("etag", "%s: two bodies under %s", c.id, tag)
	}
	c.tags[tag] = sum
	if v.LastSeq >= c.seen.lastSeq && v.Checkpoint >= c.seen.checkpoint {
		c.seen = shown{v.Checkpoint, v.LastSeq}
	}
}

var refs = regexp.MustCompile(`\br[0-9]+\.[0-9]+-[0-9a-f]{4}\b`)

// shownIn returns the refs in a view, and remembers them: each must be readable for ever.
func (c *conversation) shownIn(view []byte) []string {
	shown := refs.FindAllString(string(view), -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range shown {
		c.refs[ref] = true
	}
	return shown
}

// readBack reads what one of the refs in a view stands for.
func (r *rig) readBack(ctx context.Context, c *conversation, shown []string, random *rand.Rand) {
	if len(shown) == 0 || random.IntN(3) > 0 {
		return
	}
	r.checkRef(ctx, c, shown[random.IntN(len(shown))])
}

// checkRef reads what a ref stands for, and compares it with what was appended, if that is known. It reports whether
// an answer came.
func (r *rig) checkRef(ctx context.Context, c *conversation, ref string) bool {
	got, err := r.client.do(ctx, request{
		method: "GET", path: "/v1/sessions/" + c.id + "/results/" + ref + "?raw=true", key: c.key,
	})
	if err != nil || got.status >= 500 || got.status == http.StatusTooManyRequests {
		return false
	}
	r.found.refs.Add(1)
	sum := sha256.Sum256(got.body)
	if got.status != http.StatusOK || !strings.HasSuffix(ref, hex.EncodeToString(sum[:2])) {
		r.found.add("ref", "%s of %s: %d %s", ref, c.id, got.status, short(got.body))
		return true
	}
	var seq, part int64
	if _, err := fmt.Sscanf(ref, "r%d.%d", &seq, &part); err != nil {
		r.found.add("ref", "%s of %s cannot be read: %v", ref, c.id, err)
	}
	c.mu.Lock()
	written, known := c.bySeq[seq]
	c.mu.Unlock()
	if known && !slices.Contains(texts(written), string(got.body)) {
		r.found.add("ref", "%s of %s is nothing that message %d says: %s", ref, c.id, seq, short(got.body))
	}
	return true
}
