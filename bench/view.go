package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/zframe"
)

const readers = 8

// viewed is a session whose view has a known size: a checkpoint, and a tail of so many messages.
type viewed struct {
	id      string
	history int // messages of the log, the tail's included
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

func (v viewCase) name() string {
	how := v.encoding
	if how == "identity" {
		how = "plain"
	}
	if v.unchanged {
		how = "304"
	}
	return fmt.Sprintf("view, %d KiB, %d tail messages, %s", v.size>>10, v.tail, how)
}

var viewCases = []viewCase{
	{viewed: viewed{"view-4", 100, 4 << 10, 2}, encoding: "zstd"},
	{viewed: viewed{"view-4", 100, 4 << 10, 2}, encoding: "identity"},
	{viewed: viewed{"view-64-0", 100, 64 << 10, 0}, encoding: "zstd", goal: atLeast(0.5)},
	{viewed: viewed{"view-64-10", 100, 64 << 10, 10}, encoding: "zstd", goal: atLeast(0.5)},
	{viewed: viewed{"view-64-100", 200, 64 << 10, 100}, encoding: "zstd", goal: atLeast(0.5)},
	{viewed: viewed{"view-64-10", 100, 64 << 10, 10}, encoding: "identity"},
	{viewed: viewed{"view-64-10", 100, 64 << 10, 10}, encoding: "zstd", unchanged: true},
	{viewed: viewed{"view-512", 100, 512 << 10, 10}, encoding: "zstd"},
	{viewed: viewed{"view-512", 100, 512 << 10, 10}, encoding: "identity"},
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
		ours, known, err := b.views(ctx, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name(), err)
		}
		sql, args := postgres.ViewStatement(session.Address{Tenant: b.tenant, ID: v.id}, known)
		floor := b.pgxFloor(readers, func(int, int) statement { return statement{sql, args} })
		if err := b.compare(ctx, comparison{name: v.name(), unit: "reads/s", goal: v.goal, ours: ours, floor: floor}); err != nil {
			return fmt.Errorf("%s: %w", v.name(), err)
		}
	}
	return nil
}

const tailResult = 150 // bytes of a tool result in a tail: a hundred messages must fit into the smaller views

// createViewed appends the history over HTTP and puts a checkpoint of the wanted size over all but its tail. The
// checkpoint is not a compaction's, because its size must not depend on what the engine saves.
func (b *bench) createViewed(ctx context.Context, v viewed) error {
	c := b.newClient()
	if err := c.createSession(v.id); err != nil {
		return err
	}
	if err := b.unbound(ctx); err != nil {
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
	found, err := b.store.Session(ctx, session.Address{Tenant: b.tenant, ID: id})
	if err != nil {
		return err
	}
	body, walk := joined(messages), wire.NewFastValidator(session.OpenAIChat)
	for _, message := range messages {
		fact := wire.ShapeOfBody(session.OpenAIChat, message)
		walk.Add(&fact)
	}
	empty := json.RawMessage(`[]`)
	return b.store.CommitCheckpoint(ctx, session.Key{Tenant: b.tenant, Key: found.Key}, postgres.Outcome{
		Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone},
		Checkpoint: &postgres.Checkpoint{
			Through: through, Tokens: int64(len(body) / 4), Body: zframe.Compress(body), Size: len(body), Units: empty, Manifest: empty,
			Policy: json.RawMessage(`{}`), EngineVersion: compact.EngineVersion, Walk: walk.State(),
		},
	}, 0)
}

// views is a round of reads over HTTP, and the version that they read if the caller is to have it already.
func (b *bench) views(ctx context.Context, v viewCase) (sample, postgres.Version, error) {
	want, etag, err := b.checkView(v)
	if err != nil {
		return nil, postgres.Version{}, err
	}
	var known postgres.Version
	status := fasthttp.StatusOK
	if v.unchanged {
		view, err := b.store.View(ctx, session.Address{Tenant: b.tenant, ID: v.id}, postgres.Version{})
		if err != nil {
			return nil, known, err
		}
		known, status, want = view.Version, fasthttp.StatusNotModified, 0
	}
	headers := []string{"Accept-Encoding: " + v.encoding}
	if v.unchanged {
		headers = append(headers, "If-None-Match: "+etag)
	}
	clients := make([]*repeater, readers)
	for i := range clients {
		clients[i] = b.newRepeater(sessionPath(v.id)+"/context", headers...)
	}
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, readers, func(reader int) func() error {
			return func() error {
				got, err := clients[reader].call(status)
				if err == nil && got != want {
					err = fmt.Errorf("an answer of %d bytes instead of %d", got, want)
				}
				return err
			}
		})
	}, known, nil
}

// checkView reads the view once in both encodings and sees that they are the same JSON, of the size that the table says.
func (b *bench) checkView(v viewCase) (size int, etag string, err error) {
	plain, _, err := b.readView(v.id, "identity")
	if err != nil {
		return 0, "", err
	}
	packed, etag, err := b.readView(v.id, v.encoding)
	if err != nil {
		return 0, "", err
	}
	if v.encoding == "zstd" {
		decoder, err := zstd.NewReader(bytes.NewReader(packed))
		if err != nil {
			return 0, "", err
		}
		defer decoder.Close()
		unpacked, err := io.ReadAll(decoder)
		if err != nil || !bytes.Equal(unpacked, plain) {
			return 0, "", fmt.Errorf("the compressed view is not the plain one (%w)", err)
		}
	}
	var view struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(plain, &view); err != nil {
		return 0, "", err
	}
	if got := len(plain); got < v.size || got > v.size+1<<10 {
		return 0, "", fmt.Errorf("the view has %d bytes instead of about %d", got, v.size)
	}
	return len(packed), etag, nil
}

func (b *bench) readView(id, encoding string) (body []byte, etag string, err error) {
	c := b.newClient()
	c.request.Header.Set("Accept-Encoding", encoding)
	if err := c.send(fasthttp.MethodGet, sessionPath(id)+"/context", nil, fasthttp.StatusOK); err != nil {
		return nil, "", err
	}
	return bytes.Clone(c.response.Body()), string(c.response.Header.Peek("ETag")), nil
}
