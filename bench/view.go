package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

const readers = 8

// viewed is a session whose view has a known size: a checkpoint and a tail of that many messages.
type viewed struct {
	id      string
	history int // messages of the log, including the tail
	size    int // of the view's messages, in bytes; 0 for what a compaction leaves
	tail    int
}

// viewCase is one way to read a view.
type viewCase struct {
	viewed
	encoding  string
	unchanged bool // the caller has this version already
	goal      string
}

func (v viewCase) name() string {
	size := "after a compaction"
	if v.size > 0 {
		size = fmt.Sprintf("%d KiB", v.size>>10)
	}
	how := v.encoding
	if v.unchanged {
		how = "304"
	}
	return fmt.Sprintf("view, %s, %d tail messages, %s", size, v.tail, how)
}

const (
	zstdView  = "zstd"
	plainView = "plain"
)

var (
	view4     = viewed{"view-4", 100, 4 << 10, 2}
	view64    = viewed{"view-64-10", 100, 64 << 10, 10}
	view512   = viewed{"view-512", 100, 512 << 10, 10}
	compacted = viewed{"compacted", 300, 0, 10}
)

var viewCases = []viewCase{
	{viewed: view4, encoding: zstdView},
	{viewed: view4, encoding: plainView},
	{viewed: viewed{"view-64-0", 100, 64 << 10, 0}, encoding: zstdView, goal: ">= 0.5"},
	{viewed: view64, encoding: zstdView, goal: ">= 0.5"},
	{viewed: viewed{"view-64-100", 200, 64 << 10, 100}, encoding: zstdView, goal: ">= 0.5"},
	{viewed: view64, encoding: plainView},
	{viewed: view64, encoding: zstdView, unchanged: true},
	{viewed: view512, encoding: zstdView},
	{viewed: view512, encoding: plainView},
}

// compactedCases are for -against: only a compaction can make a checkpoint in another checkout's database.
var compactedCases = []viewCase{
	{viewed: compacted, encoding: zstdView},
	{viewed: compacted, encoding: plainView},
	{viewed: compacted, encoding: zstdView, unchanged: true},
}

// viewLoads returns reads over HTTP, beside a bare loop that reads the same row.
func viewLoads(b *bench) (cases []loadCase) {
	all := viewCases
	if b.against != "" {
		all = compactedCases
	}
	for _, v := range all {
		cases = append(cases, loadCase{
			name: v.name(), unit: "reads/s", goal: v.goal,
			prepare: func(ctx context.Context, s *site) error { return b.createViewed(ctx, s, v.viewed) },
			round:   func(s *site) (sample, error) { return b.views(s, v) },
			floor:   func() (sample, error) { return b.viewFloor(v) },
		})
	}
	return cases
}

// viewFloor returns a round of the store's own statement.
func (b *bench) viewFloor(v viewCase) (sample, error) {
	at := session.Address{Tenant: b.here.tenant, ID: v.id}
	var known postgres.Version
	if v.unchanged {
		view, err := b.store.View(context.Background(), at, known)
		if err != nil {
			return nil, err
		}
		known = view.Version
	}
	sql, args := postgres.ViewStatement(at, known)
	return b.pgxFloor(readers, func(int, int) statement { return statement{sql, args} }), nil
}

const tailResult = 150 // bytes of a tool result in a tail: a hundred messages must fit into the smaller views

// createViewed makes a session with a checkpoint and a tail. If the view must have a certain size, the checkpoint is
// put there: what a compaction leaves depends on the engine.
func (b *bench) createViewed(ctx context.Context, s *site, v viewed) error {
	if s.made[v.id] {
		return nil
	}
	s.made[v.id] = true
	c := s.newClient()
	made := newCorpus(64)
	if v.size == 0 {
		return c.createCompacted(ctx, v, made)
	}
	if err := errors.Join(c.createSession(v.id), s.unbound(ctx)); err != nil {
		return err
	}
	history := made.conversation(v.history-v.tail, 2*tailResult)
	var tail [][]byte
	for len(tail) < v.tail {
		tail = append(tail, made.turn(tailResult)...)
	}
	if err := c.appendAll(v.id, append(history, tail...)); err != nil {
		return err
	}
	size := v.size - len(joined(tail))
	var body [][]byte
	for total := 0; total < size; total += len(body[len(body)-1]) + 1 {
		body = append(body, made.message(min(2<<10, max(100, size-total-1))))
	}
	return b.putCheckpoint(ctx, v.id, int64(v.history-v.tail), body)
}

// createCompacted makes a session that was compacted, with messages after its checkpoint.
func (c *client) createCompacted(ctx context.Context, v viewed, made *corpus) error {
	messages := made.conversation(v.history-v.tail-1, crossingResult)
	if err := c.bringToTrigger(v.id, messages); err != nil {
		return err
	}
	if _, err := c.cross(ctx, v.id, [][]byte{made.message(messageBytes)}); err != nil {
		return err
	}
	return c.appendAll(v.id, made.conversation(v.tail, tailResult))
}

// putCheckpoint puts a checkpoint of these messages over a session's beginning.
func (b *bench) putCheckpoint(ctx context.Context, id string, through int64, messages [][]byte) error {
	found, err := b.store.Session(ctx, session.Address{Tenant: b.here.tenant, ID: id})
	if err != nil {
		return err
	}
	body, walk := joined(messages), wire.NewFastValidator(session.OpenAIChat)
	for _, message := range messages {
		fact := wire.ShapeOfBody(session.OpenAIChat, message)
		walk.Add(&fact)
	}
	empty := json.RawMessage(`[]`)
	return b.store.CommitCheckpoint(ctx, session.Key{Tenant: b.here.tenant, Key: found.Key}, postgres.Outcome{
		Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone},
		Checkpoint: &postgres.Checkpoint{
			Through: through, Tokens: int64(len(body) / 4), Body: zframe.Compress(body), Size: len(body), Units: empty,
			Manifest: empty, Policy: json.RawMessage(`{}`), EngineVersion: compact.EngineVersion, Walk: walk.State(),
		},
	}, 0)
}

// views returns a round of reads over HTTP, after it checked that the view is the same JSON in each encoding.
func (b *bench) views(s *site, v viewCase) (sample, error) {
	c := s.newClient()
	path := sessionPath(v.id) + "/context"
	plain, err := c.fetch(path, plainView)
	if err != nil {
		return nil, err
	}
	packed, err := c.fetch(path, v.encoding)
	if err != nil {
		return nil, err
	}
	if err := checkView(v, plain, packed); err != nil {
		return nil, err
	}
	if v.size == 0 {
		b.note("%s: a view of %d bytes, of which %d were sent", v.name(), len(plain), len(packed))
	}
	status := http.StatusOK
	want := len(packed)
	headers := []string{acceptEncoding(v.encoding)}
	if v.unchanged {
		status = http.StatusNotModified
		want = 0
		headers = append(headers, "If-None-Match: "+c.etag)
	}
	clients := s.newClients(readers)
	request := c.request("GET", path, nil, headers...)
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, readers, func(reader int) func() error {
			c := clients[reader]
			return func() error {
				err := c.call(request, status)
				if got := c.body.Len(); err == nil && got != want {
					err = fmt.Errorf("an answer of %d bytes instead of %d", got, want)
				}
				return err
			}
		})
	}, nil
}

// acceptEncoding returns the header that asks for an encoding.
func acceptEncoding(encoding string) string {
	if encoding == plainView {
		encoding = "identity"
	}
	return "Accept-Encoding: " + encoding
}

// fetch returns the body of an answer in an encoding.
func (c *client) fetch(path, encoding string) ([]byte, error) {
	err := c.call(c.request("GET", path, nil, acceptEncoding(encoding)), http.StatusOK)
	return bytes.Clone(c.body.Bytes()), err
}

// checkView returns an error unless the view is JSON of the wanted size, and packed is the same view.
func checkView(v viewCase, plain, packed []byte) error {
	if !json.Valid(plain) {
		return errors.New("the view is not JSON")
	}
	if v.size > 0 && (len(plain) < v.size || len(plain) > v.size+1<<10) {
		return fmt.Errorf("the view has %d bytes instead of about %d", len(plain), v.size)
	}
	if v.encoding == zstdView {
		decoder, err := zstd.NewReader(nil)
		if err != nil {
			return err
		}
		defer decoder.Close()
		if packed, err = decoder.DecodeAll(packed, nil); err != nil {
			return err
		}
	}
	if !bytes.Equal(plain, packed) {
		return errors.New("the compressed view is not the plain one")
	}
	return nil
}

// historyLoads returns reads of the same view of long histories, beside those of a short one.
func historyLoads(b *bench) (cases []loadCase) {
	short := viewCase{viewed: viewed{"history-100", 100, 64 << 10, 10}, encoding: zstdView}
	for _, n := range []int{10_000, 100_000} {
		long := short
		long.id = fmt.Sprintf("history-%d", n)
		long.history = n
		cases = append(cases, loadCase{
			name: fmt.Sprintf("view, 64 KiB, history of %d, beside 100", n), unit: "reads/s", goal: ">= 0.9",
			prepare: func(ctx context.Context, s *site) error {
				if err := errors.Join(b.createViewed(ctx, s, short.viewed), b.createViewed(ctx, s, long.viewed)); err != nil {
					return err
				}
				_, err := s.admin.Exec(ctx, `VACUUM ANALYZE messages`)
				return err
			},
			round: func(s *site) (sample, error) { return b.views(s, long) },
			floor: func() (sample, error) { return b.views(b.here, short) },
		})
	}
	return cases
}
