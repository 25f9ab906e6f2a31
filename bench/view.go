package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

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
	how  string // the encoding, or notModified for a caller who has this version already
	goal string
}

const notModified = "304"

func (v viewCase) name() string {
	size := "after a compaction"
	if v.size > 0 {
		size = fmt.Sprintf("%d KiB", v.size>>10)
	}
	return fmt.Sprintf("view, %s, %d tail messages, %s", size, v.tail, v.how)
}

var (
	view4     = viewed{"view-4", 100, 4 << 10, 2}
	view64    = viewed{"view-64", 100, 64 << 10, 10}
	noTail    = viewed{"view-no-tail", 100, 64 << 10, 0}
	longTail  = viewed{"view-long-tail", 200, 64 << 10, 100}
	view512   = viewed{"view-512", 100, 512 << 10, 10}
	compacted = viewed{"compacted", 301, 0, 10} // its history ends with a tool's answer
)

var viewCases = []viewCase{
	{view4, "zstd", ""}, {view4, "identity", ""}, {noTail, "zstd", ">= 0.5"}, {view64, "zstd", ">= 0.5"},
	{longTail, "zstd", ">= 0.5"}, {view64, "identity", ""}, {view64, notModified, ""}, {view512, "zstd", ""},
	{view512, "identity", ""},
}

// compactedCases are for -against: only a compaction can make a checkpoint in another checkout's database.
var compactedCases = []viewCase{{compacted, "zstd", ""}, {compacted, "identity", ""}, {compacted, notModified, ""}}

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

// historyLoads returns reads of the same view of long histories, beside those of a short one.
func historyLoads(b *bench) (cases []loadCase) {
	for _, n := range []int{10_000, 100_000} {
		long := viewed{fmt.Sprintf("history-%d", n), n, 64 << 10, 10}
		cases = append(cases, loadCase{
			name: fmt.Sprintf("view, 64 KiB, history of %d, beside 100", n), unit: "reads/s", goal: ">= 0.9",
			prepare: func(ctx context.Context, s *site) error {
				if err := errors.Join(b.createViewed(ctx, s, view64), b.createViewed(ctx, s, long)); err != nil {
					return err
				}
				_, err := s.admin.Exec(ctx, `VACUUM ANALYZE messages`)
				return err
			},
			round: func(s *site) (sample, error) { return b.views(s, viewCase{long, "zstd", ""}) },
			floor: func() (sample, error) { return b.views(b.here, viewCase{view64, "zstd", ""}) },
		})
	}
	return cases
}

// views returns a round of reads over HTTP. Every answer must have as many bytes as the first.
func (b *bench) views(s *site, v viewCase) (sample, error) {
	path := sessionPath(v.id) + "/context"
	encoding := "Accept-Encoding: " + v.how
	c := s.newClient()
	request := c.request("GET", path, nil, encoding)
	status := http.StatusOK
	if err := c.call(request, status); err != nil {
		return nil, err
	}
	size := c.body.Len()
	if v.size == 0 {
		b.note("%s: an answer of %d bytes", v.name(), size)
	}
	if v.how == notModified {
		request = c.request("GET", path, nil, "If-None-Match: "+c.etag)
		status = http.StatusNotModified
		size = 0
	}
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, readers, func(int) func() error {
			c := s.newClient()
			return func() error {
				err := c.call(request, status)
				if got := c.body.Len(); err == nil && got != size {
					err = fmt.Errorf("an answer of %d bytes instead of %d", got, size)
				}
				return err
			}
		})
	}, nil
}

// viewFloor returns a round of the store's own statement.
func (b *bench) viewFloor(v viewCase) (sample, error) {
	at := session.Address{Tenant: b.here.tenant, ID: v.id}
	var known postgres.Version
	if v.how == notModified {
		view, err := b.store.View(context.Background(), at, known)
		if err != nil {
			return nil, err
		}
		known = view.Version
	}
	return b.pgxFloor(readers, func(int, int) (string, []any) { return postgres.ViewStatement(at, known) }), nil
}

const tailResult = 150 // bytes of a tool result in a tail: a hundred messages must fit into the smaller views

// createViewed makes a session with a checkpoint and a tail, unless it is there. If the view must have a certain size,
// the checkpoint is put there: what a compaction leaves depends on the engine.
func (b *bench) createViewed(ctx context.Context, s *site, v viewed) error {
	if s.made[v.id] {
		return nil
	}
	s.made[v.id] = true
	c := s.newClient()
	made := newCorpus(64)
	result := 2 * tailResult
	if v.size == 0 {
		result = crossingResult
	}
	history := made.conversation(v.history-v.tail, result)
	var tail [][]byte
	for len(tail) < v.tail {
		tail = append(tail, made.turn(tailResult)...)
	}
	if v.size == 0 {
		last := len(history) - 1
		if err := c.bringToTrigger(v.id, history[:last]); err != nil {
			return err
		}
		_, err := c.cross(ctx, v.id, history[last:])
		return errors.Join(err, c.appendAll(v.id, tail), c.checkViewed(v))
	}
	err := errors.Join(c.createSession(v.id), s.unbound(ctx), c.appendAll(v.id, append(history, tail...)))
	if err != nil {
		return err
	}
	size := v.size - len(joined(tail))
	var body [][]byte
	for total := 0; total < size; total += len(body[len(body)-1]) + 1 {
		body = append(body, made.message(min(2<<10, max(100, size-total-1))))
	}
	return errors.Join(b.putCheckpoint(ctx, v.id, int64(v.history-v.tail), body), c.checkViewed(v))
}

// checkViewed returns an error unless a session's view has the wanted size, and is sent as it is stored: compressed. A
// view that needs repairs is not, and would measure something else.
func (c *client) checkViewed(v viewed) error {
	sizes := map[string]int{"zstd": 0, "identity": 0}
	for encoding := range sizes {
		request := c.request("GET", sessionPath(v.id)+"/context", nil, "Accept-Encoding: "+encoding)
		if err := c.call(request, http.StatusOK); err != nil {
			return err
		}
		sizes[encoding] = c.body.Len()
	}
	plain := sizes["identity"]
	if v.size > 0 && (plain < v.size || plain > v.size+1<<10) {
		return fmt.Errorf("the view of %s has %d bytes instead of about %d", v.id, plain, v.size)
	}
	if sizes["zstd"] > plain*9/10 {
		return fmt.Errorf("the view of %s has %d bytes, but compressed %d", v.id, plain, sizes["zstd"])
	}
	return nil
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
			Manifest: empty, Policy: json.RawMessage(`{}`), EngineVersion: compact.EngineVersion,
			ValidatorState: walk.State(),
		},
	}, 0)
}
