package client

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/protocol"
)

// Upload streams one file into an import. A second Upload with the same key continues where the first one stopped.
type Upload struct {
	File     *os.File
	Import   NewImport
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
	begun, err := c.BeginImport(ctx, u.Import)
	i = begun.Value
	for err == nil && !i.Ended() {
		u.Progress(i)
		before := i.Progress.Done
		var fed protocol.Import
		fed, err = c.feed(ctx, u, i, info)
		if err == nil {
			return fed, nil
		}
		if !Passing(err) || !info.Mode().IsRegular() {
			return c.ended(ctx, i, err)
		}
		cause := err
		var now Answer[protocol.Import]
		if now, err = c.Import(ctx, i.ID.String()); err != nil { // it has waited for the server
			return i, errors.Join(cause, err)
		}
		if i = now.Value; i.Progress.Done == before {
			return i, cause
		}
	}
	return i, err
}

// ended returns the import with the error that its lines met: the server may have ended it.
func (c *Client) ended(ctx context.Context, i protocol.Import, cause error) (protocol.Import, error) {
	if ctx.Err() != nil {
		return i, ctx.Err()
	}
	if now, err := c.Import(ctx, i.ID.String()); err == nil {
		return now.Value, cause
	}
	return i, cause
}

// feed sends the lines that the import does not have, and reports its progress meanwhile.
func (c *Client) feed(ctx context.Context, u Upload, i protocol.Import, info os.FileInfo) (protocol.Import, error) {
	f := ImportFeed{Lines: io.NopCloser(u.File), FromLine: 1}
	if info.Mode().IsRegular() {
		offset := int64(0)
		if i.From != nil && *i.From == archive.Source { // files of other sources are sent whole
			offset, f.FromLine = i.Bytes, i.Progress.Done+1
		}
		f.Lines = io.NewSectionReader(u.File, offset, info.Size()-offset)
	}
	watched, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.watch(watched, i.ID.String(), u.Progress)
	}()
	fed, err := c.FeedImport(ctx, i.ID.String(), f)
	stop()
	<-done
	return fed.Value, err
}

// watch reports an import's progress until ctx ends. One that cannot be read is not reported.
func (c *Client) watch(ctx context.Context, id string, report func(protocol.Import)) {
	for c.Sleep(ctx, progressEvery) == nil {
		res, err := c.send(ctx, importCall(id), nil)
		if err != nil {
			continue
		}
		if now, err := read[protocol.Import](ctx, c, importCall(id), res); err == nil {
			report(now.Value)
		}
	}
}
