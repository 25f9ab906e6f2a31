package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conversation is a session, and what the oracle knows of it.
type conversation struct {
	id        string
	number    int
	pictures  int
	bytes     int64 // of its messages
	log       [32]byte
	compacted time.Duration // after it was asked for
}

// picture returns picture n of a session in Base64, always the same one.
func picture(session, n, size int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(session))
	binary.LittleEndian.PutUint64(seed[8:], uint64(n))
	raw := make([]byte, size/4*3)
	_, _ = rand.NewChaCha8(seed).Read(raw) // it never fails
	copy(raw, "\x89PNG\r\n\x1a\n")
	return base64.StdEncoding.AppendEncode(nil, raw)
}

// turn returns the two messages in which the agent takes a screenshot.
func turn(session, n, size int) [][]byte {
	return [][]byte{
		fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"computer",`+
			`"input":{}}]}`, n),
		fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[`+
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
			n, picture(session, n, size)),
	}
}

// patient is a policy under which nothing is compacted on its own.
const patient = `{"format":"anthropic","window_tokens":1000000,"policy":{"trigger":0.95,"hard":1,"trigger_bytes":0}}`

// fill appends the pictures of all sessions.
func (r *rig) fill(ctx context.Context) error {
	began := time.Now()
	for n := range r.options.sessions {
		r.sessions = append(r.sessions, &conversation{id: fmt.Sprintf("s%d", n), number: n})
	}
	failed := r.each(func(c *conversation) error { return r.fillOne(ctx, c) })
	total := int64(0)
	for _, c := range r.sessions {
		total += c.bytes
	}
	r.found.row("%d sessions of %d pictures, %d MB in all, appended in %s", len(r.sessions),
		r.sessions[0].pictures, total/1_000_000, time.Since(began).Round(time.Second))
	return failed
}

func (r *rig) each(do func(*conversation) error) error {
	failed := make([]error, len(r.sessions))
	var group sync.WaitGroup
	for i, c := range r.sessions {
		group.Go(func() { failed[i] = do(c) })
	}
	group.Wait()
	return errors.Join(failed...)
}

func (r *rig) fillOne(ctx context.Context, c *conversation) error {
	if err := r.must(ctx, "PUT", "/v1/sessions/"+c.id, []byte(patient)); err != nil {
		return err
	}
	logged := sha256.New()
	first := []byte(`{"role":"user","content":"use the computer"}`)
	logged.Write(first)
	batch := [][]byte{first}
	for c.bytes = int64(len(first)); c.bytes < r.options.bytes; c.pictures++ {
		for _, m := range turn(c.number, c.pictures, r.options.picture) {
			logged.Write([]byte{','})
			logged.Write(m)
			c.bytes += int64(len(m))
			batch = append(batch, m)
		}
		body := slices.Concat([]byte(`{"format":"anthropic","messages":[`), bytes.Join(batch, []byte{','}),
			[]byte(`]}`))
		if err := r.must(ctx, "POST", "/v1/sessions/"+c.id+"/messages", body); err != nil {
			return err
		}
		batch = nil
	}
	c.log = [32]byte(logged.Sum(nil))
	return nil
}

// must sends a request, again as long as there is no room for it.
func (r *rig) must(ctx context.Context, method, path string, body []byte) error {
	for {
		response, err := r.ask(ctx, method, path, body)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case err != nil || response.StatusCode < http.StatusBadRequest:
			return err
		case response.StatusCode != http.StatusServiceUnavailable && response.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("%s %s: %d %.500s", method, path, response.StatusCode, text)
		}
		if !pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

func pause(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

func (r *rig) ask(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.api.addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(request)
}

// atOnce reads and compacts all sessions at the same time, until all are compacted.
func (r *rig) atOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.options.patience)
	defer cancel()
	done, compacted := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for _, c := range r.sessions {
		readers.Go(func() {
			for round := 0; round == 0 || done.Err() == nil && ctx.Err() == nil; round++ {
				r.readAll(ctx, c, readings)
			}
		})
	}
	if err := r.each(func(c *conversation) error { return r.compact(ctx, c) }); err != nil {
		r.found.add("not compacted: %v", err)
	}
	compacted()
	readers.Wait()
}

// compact lets a session be compacted by the policy that is the default, and waits until it is.
func (r *rig) compact(ctx context.Context, c *conversation) error {
	began := time.Now()
	usual := []byte(`{"trigger_bytes":16777216}`)
	if err := r.must(ctx, "PATCH", "/v1/sessions/"+c.id+"/policy", usual); err != nil {
		return err
	}
	for {
		if err := r.must(ctx, "POST", "/v1/sessions/"+c.id+"/compact?wait=20", nil); err != nil {
			return err
		}
		var now struct{ Checkpoint int }
		if err := r.get(ctx, "/v1/sessions/"+c.id, &now); err != nil {
			return err
		}
		if now.Checkpoint > 0 {
			c.compacted = time.Since(began)
			return nil
		}
	}
}

// get reads a JSON document.
func (r *rig) get(ctx context.Context, path string, into any) error {
	response, err := r.ask(ctx, "GET", path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %d", path, response.StatusCode)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// readings are the ways to read a session. The first is the log, whose bytes are known.
var readings = []string{
	"/context?view=full", "/context", "/context?format=openai-chat", "/context?max_tokens=20000", "/export",
}

// later are the ways to read what a compaction has left: the log and the views before and after it, what differs
// between them, and what has gone.
var later = []string{
	"/checkpoints/1/context", "/checkpoints/1?manifest=all", "/checkpoints/1/diff?to=2",
	"/messages?limit=1000", "/search?q=computer", "/results/grep?pattern=PNG",
}

// again are what computes or takes up a view once more; the second makes a second checkpoint.
var again = []string{"/preview", "/checkpoints/1/restore"}

// afterwards does to all sessions at once what is done to a session that was compacted.
func (r *rig) afterwards(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.options.patience)
	defer cancel()
	_ = r.each(func(c *conversation) error {
		for _, path := range again {
			r.post(ctx, c, path)
		}
		r.readAll(ctx, c, later)
		return nil
	})
}

// post sends a request that may be refused for memory.
func (r *rig) post(ctx context.Context, c *conversation, path string) {
	response, err := r.ask(ctx, "POST", "/v1/sessions/"+c.id+path, nil)
	if err != nil {
		r.found.add("POST %s of %s: %v", path, c.id, err)
		return
	}
	defer response.Body.Close()
	answer := strconv.Itoa(response.StatusCode)
	if response.StatusCode >= http.StatusMultipleChoices {
		answer, err = refusal(response)
	} else {
		_, err = io.Copy(io.Discard, response.Body)
	}
	if err != nil {
		r.found.add("POST %s of %s: %v", path, c.id, err)
		answer = "no answer"
	}
	r.found.answered("POST "+path, answer)
}

// readAll reads a session in these ways.
func (r *rig) readAll(ctx context.Context, c *conversation, ways []string) {
	for _, way := range ways {
		answer, err := r.read(ctx, c, way)
		if err != nil && ctx.Err() == nil {
			r.found.add("GET %s of %s: %v", way, c.id, err)
			answer = "no answer"
		}
		if ctx.Err() == nil {
			r.found.answered("GET "+way, answer)
		}
	}
}

// read reads a session in one way, and returns how it was answered.
func (r *rig) read(ctx context.Context, c *conversation, way string) (answer string, err error) {
	response, err := r.ask(ctx, "GET", "/v1/sessions/"+c.id+way, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	isView := strings.HasPrefix(way, "/context")
	digest, end, err := digestOf(response.Body, isView)
	switch {
	case err != nil:
		return "", err
	case isView && end != "]}":
		return "", fmt.Errorf("the answer ends with %q", end)
	case way == readings[0] && digest != c.log:
		return "", errors.New("the log has other bytes than what was appended")
	}
	return "200", nil
}

// refusal returns the code of an answer that refuses a request for memory, and an error for any other.
func refusal(response *http.Response) (string, error) {
	var problem struct{ Code string }
	if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
		return "", fmt.Errorf("%d: %w", response.StatusCode, err)
	}
	answer := fmt.Sprintf("%d %s", response.StatusCode, problem.Code)
	switch {
	case answer == "503 over_capacity" && response.Header.Get("Retry-After") == "":
		return "", errors.New(answer + " without Retry-After")
	case answer != "503 over_capacity" && answer != "422 too_heavy":
		return "", errors.New(answer)
	}
	return answer, nil
}

// digestOf returns the digest of the messages of a view, or of the whole of another body, and the last two bytes.
func digestOf(body io.Reader, ofMessages bool) (digest [32]byte, end string, err error) {
	in := bufio.NewReaderSize(body, 1<<16)
	for ofMessages {
		head, err := in.ReadSlice('[')
		if err != nil {
			return digest, "", fmt.Errorf("before the messages: %w", err)
		}
		if bytes.HasSuffix(head, []byte(`"messages":[`)) {
			break
		}
	}
	d := &delayed{to: sha256.New()}
	_, err = io.Copy(d, in)
	return [32]byte(d.to.Sum(nil)), string(d.end), err
}

// delayed hashes all but the last two bytes that are written to it.
type delayed struct {
	to  hash.Hash
	end []byte
}

func (d *delayed) Write(p []byte) (int, error) {
	all := append(d.end, p...)
	n := max(len(all)-2, 0)
	d.to.Write(all[:n])
	d.end = slices.Clone(all[n:])
	return len(p), nil
}

// check compares what is stored in the end with what was appended.
func (r *rig) check(ctx context.Context) {
	const mega = 1_000_000
	r.found.row("%-8s %12s %12s %12s %12s", "session", "MB of log", "MB of view", "results", "compacted in")
	for _, c := range r.sessions {
		answer, err := r.read(ctx, c, readings[0])
		if err != nil || answer != "200" {
			r.found.add("the log of %s: %s %v", c.id, answer, err)
		}
		size, err := r.viewSize(ctx, c)
		if err != nil {
			r.found.add("the view of %s: %v", c.id, err)
		}
		gone, err := r.checkResults(ctx, c)
		if err != nil {
			r.found.add("the results of %s: %v", c.id, err)
		}
		if limit := int64(16<<20 + 2*r.options.picture); size > limit {
			r.found.add("the view of %s has %d bytes after its compaction", c.id, size)
		}
		r.found.row("%-8s %12.1f %12.1f %12d %12s", c.id, float64(c.bytes)/mega, float64(size)/mega, gone,
			c.compacted.Round(100*time.Millisecond))
	}
}

func (r *rig) viewSize(ctx context.Context, c *conversation) (int64, error) {
	response, err := r.ask(ctx, "GET", "/v1/sessions/"+c.id+"/context", nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// checkResults reads some of the pictures that left the view by their refs, and returns how many have left.
func (r *rig) checkResults(ctx context.Context, c *conversation) (gone int, err error) {
	next := ""
	for {
		var page struct {
			Data []struct {
				Ref string
				Seq int
			}
			Next *string `json:"next_cursor"`
		}
		if err := r.get(ctx, "/v1/sessions/"+c.id+"/results?limit=100"+next, &page); err != nil {
			return gone, err
		}
		for _, result := range page.Data {
			if gone++; gone%50 == 1 {
				if err := r.checkResult(ctx, c, result.Ref, result.Seq/2-1); err != nil {
					return gone, err
				}
			}
		}
		if page.Next == nil || cmp.Or(*page.Next, "") == "" {
			break
		}
		next = "&cursor=" + url.QueryEscape(*page.Next)
	}
	if gone == 0 {
		err = errors.New("there are none")
	}
	return gone, err
}

// checkResult compares a result with picture n.
func (r *rig) checkResult(ctx context.Context, c *conversation, ref string, n int) error {
	response, err := r.ask(ctx, "GET", "/v1/sessions/"+c.id+"/results/"+ref+"?raw=true", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(content, picture(c.number, n, r.options.picture)) {
		err = fmt.Errorf("%s (%d, %d bytes) is not picture %d", ref, response.StatusCode, len(content), n)
	}
	return err
}

// print prints what was found.
func (f *findings) print(out io.Writer) {
	for _, row := range f.rows {
		fmt.Fprintln(out, row)
	}
	for _, key := range slices.Sorted(maps.Keys(f.answers)) {
		fmt.Fprintf(out, "%-50s %6d\n", key, f.answers[key])
	}
	for _, a := range f.anomalies {
		fmt.Fprintln(out, "ANOMALY:", a)
	}
	fmt.Fprintf(out, "%d anomalies\n", len(f.anomalies))
}
