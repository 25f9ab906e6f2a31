package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	size    int // of the view's messages, in bytes
	tail    int
}

// viewCase is one way to read a view.
type viewCase struct {
	viewed
	encoding  string
	unchanged bool // the caller has this version already
	goal      *goal
}

// how names the way of reading.
func (v viewCase) how() string {
	switch {
	case v.unchanged:
		return "304"
	case v.encoding == "identity":
		return "plain"
	}
	return v.encoding
}

func (v viewCase) name() string {
	return fmt.Sprintf("view, %d KiB, %d tail messages, %s", v.size>>10, v.tail, v.how())
}

var (
	view4   = viewed{"view-4", 100, 4 << 10, 2}
	view64  = viewed{"view-64-10", 100, 64 << 10, 10}
	view512 = viewed{"view-512", 100, 512 << 10, 10}
)

var viewCases = []viewCase{
	{viewed: view4, encoding: "zstd"},
	{viewed: view4, encoding: "identity"},
	{viewed: viewed{"view-64-0", 100, 64 << 10, 0}, encoding: "zstd", goal: atLeast(0.5)},
	{viewed: view64, encoding: "zstd", goal: atLeast(0.5)},
	{viewed: viewed{"view-64-100", 200, 64 << 10, 100}, encoding: "zstd", goal: atLeast(0.5)},
	{viewed: view64, encoding: "identity"},
	{viewed: view64, encoding: "zstd", unchanged: true},
	{viewed: view512, encoding: "zstd"},
	{viewed: view512, encoding: "identity"},
}

// measureViews compares reads over HTTP with a bare pgx loop that reads the same row.
func measureViews(ctx context.Context, b *bench) error {
	made := map[string]bool{}
	for _, v := range viewCases {
		if !b.wants(v.name()) {
			continue
		}
		if !made[v.id] {
			if err := b.createViewed(ctx, v.viewed); err != nil {
				return fmt.Errorf("session %s: %w", v.id, err)
			}
			made[v.id] = true
		}
		if err := b.measureView(ctx, v); err != nil {
			return fmt.Errorf("%s: %w", v.name(), err)
		}
	}
	return nil
}

func (b *bench) measureView(ctx context.Context, v viewCase) error {
	ours, size, err := b.here.views(v)
	if err != nil {
		return err
	}
	if size < v.size || size > v.size+1<<10 {
		return fmt.Errorf("the view has %d bytes instead of about %d", size, v.size)
	}
	at := session.Address{Tenant: b.here.tenant, ID: v.id}
	var known postgres.Version
	if v.unchanged {
		view, err := b.store.View(ctx, at, known)
		if err != nil {
			return err
		}
		known = view.Version
	}
	sql, args := postgres.ViewStatement(at, known)
	floor := b.pgxFloor(readers, func(int, int) statement { return statement{sql, args} })
	return b.compare(ctx, comparison{name: v.name(), unit: "reads/s", goal: v.goal, ours: ours, floor: floor})
}

const tailResult = 150 // bytes of a tool result in a tail: a hundred messages must fit into the smaller views

// createViewed appends the history over HTTP and puts a checkpoint of the wanted size over all but its tail. No
// compaction makes the checkpoint, because its size must not depend on what the engine saves.
func (b *bench) createViewed(ctx context.Context, v viewed) error {
	c := b.here.newClient()
	if err := c.createSession(v.id); err != nil {
		return err
	}
	if err := b.here.unbound(ctx); err != nil {
		return err
	}
	made := newCorpus(64)
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

// views returns a round of reads over HTTP and the size of the plain view.
func (s *site) views(v viewCase) (round sample, size int, err error) {
	plain, packed, etag, err := s.checkView(v)
	if err != nil {
		return nil, 0, err
	}
	status, want := http.StatusOK, packed
	headers := []string{"Accept-Encoding: " + v.encoding}
	if v.unchanged {
		status, want = http.StatusNotModified, 0
		headers = append(headers, "If-None-Match: "+etag)
	}
	clients := s.newClients(readers)
	request := clients[0].request("GET", sessionPath(v.id)+"/context", nil, headers...)
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
	}, plain, nil
}

// checkView reads the view once plain and once in the case's encoding, and returns an error unless both are the same
// JSON.
func (s *site) checkView(v viewCase) (plain, packed int, etag string, err error) {
	c := s.newClient()
	path := sessionPath(v.id) + "/context"
	if err := c.call(c.request("GET", path, nil, "Accept-Encoding: identity"), http.StatusOK); err != nil {
		return 0, 0, "", err
	}
	text := bytes.Clone(c.body.Bytes())
	if !json.Valid(text) {
		return 0, 0, "", fmt.Errorf("the view is not JSON")
	}
	if err := c.call(c.request("GET", path, nil, "Accept-Encoding: "+v.encoding), http.StatusOK); err != nil {
		return 0, 0, "", err
	}
	if v.encoding != "zstd" {
		return len(text), c.body.Len(), c.etag, nil
	}
	decoder, err := zstd.NewReader(bytes.NewReader(c.body.Bytes()))
	if err != nil {
		return 0, 0, "", err
	}
	defer decoder.Close()
	unpacked, err := io.ReadAll(decoder)
	if err != nil || !bytes.Equal(unpacked, text) {
		return 0, 0, "", fmt.Errorf("the compressed view is not the plain one (%w)", err)
	}
	return len(text), c.body.Len(), c.etag, nil
}
