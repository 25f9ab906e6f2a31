package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/protocol"
)

// Upload streams one file into an import. The same Upload of a file that has not changed continues where the first one
// stopped; after its end it is another import, which finds what is stored already.
type Upload struct {
	File     *os.File
	From     string // what the lines are; "" looks at the content
	Session  string // the session's id, for a file of another source
	Settings string // JSON of new sessions, for a file of another source; "" for none
	Progress func(protocol.Import)
}

// progressEvery is how often the import is read while its lines are sent.
const progressEvery = time.Second

// Upload streams a file, and returns the import at its end. Where the connection or the server fails, it continues from
// the lines that are stored, as long as some are in each try.
func (c *Client) Upload(ctx context.Context, u Upload) (i protocol.Import, err error) {
	info, err := u.File.Stat()
	if err != nil {
		return i, err
	}
	o := Options{Key: u.key(info), Query: Query{"more": true, "from": u.From, "session": u.Session}} // without any line
	begun, err := BeginImport.With(ctx, c, o)
	if err == nil && begun.Value.State.Ended() {
		o.Key = uuid.NewString()
		begun, err = BeginImport.With(ctx, c, o)
	}
	i = begun.Value
	for err == nil && !i.State.Ended() {
		u.Progress(i)
		fed, cause := c.feed(ctx, u, i, info)
		if cause == nil {
			return fed, nil
		}
		now, unread := GetImport.Call(ctx, c, i.ID) // it waits for the server
		switch {
		case ctx.Err() != nil:
			return i, ctx.Err()
		case unread != nil:
			return i, errors.Join(cause, unread)
		case !Passing(cause), !info.Mode().IsRegular(), now.Value.Progress.Done == i.Progress.Done:
			return now.Value, cause
		}
		i = now.Value
	}
	return i, err
}

// key returns an Idempotency-Key that the same file always has, unless it cannot be read twice.
func (u *Upload) key(info os.FileInfo) string {
	path, err := filepath.Abs(u.File.Name())
	if err != nil || !info.Mode().IsRegular() {
		return uuid.NewString()
	}
	file := fmt.Sprintf("%q %d %d %q %q", path, info.Size(), info.ModTime().UnixNano(), u.From, u.Session)
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(file)).String()
}

// feed sends the lines that the import does not have, once, and reports its progress meanwhile.
func (c *Client) feed(ctx context.Context, u Upload, i protocol.Import, info os.FileInfo) (protocol.Import, error) {
	lines := io.Reader(io.NopCloser(u.File))
	query := Query{"from_line": 1, "more": false, "settings": u.Settings}
	if info.Mode().IsRegular() {
		offset := int64(0)
		if i.From != nil && *i.From == archive.Source { // files of other sources are sent whole
			offset = i.Bytes
			query["from_line"] = i.Progress.Done + 1
		}
		lines = io.NewSectionReader(u.File, offset, info.Size()-offset)
	}
	watched, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.watch(watched, i.ID, u.Progress)
	}()
	defer func() {
		stop()
		<-done
	}()
	req, err := c.request(ctx, "POST imports/{import}", Options{Query: query, Body: lines}, []any{i.ID})
	if err != nil {
		return i, err
	}
	res, err := c.send(req)
	if err != nil {
		return i, err
	}
	fed, err := read[protocol.Import](ctx, c, res)
	return fed.Value, err
}

// watch reports an import's progress until ctx ends. It does not wait for a server that is not ready.
func (c *Client) watch(ctx context.Context, id uuid.UUID, report func(protocol.Import)) {
	impatient := *c
	impatient.Patience = 0
	for c.Sleep(ctx, progressEvery) == nil {
		if now, err := GetImport.Call(ctx, &impatient, id); err == nil {
			report(now.Value)
		}
	}
}
