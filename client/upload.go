package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/packed"
	"github.com/varve-dev/varve/internal/protocol"
)

// The routes of imports.
const (
	CreateImport    Route[protocol.Import]      = "POST imports"
	ReadImport      Route[protocol.Import]      = "GET imports/{import}"
	ListImportLines Route[protocol.ImportLines] = "GET imports/{import}/lines"
)

// Upload streams one file into an import. The same Upload of a file that has not changed continues where the first one
// stopped; after its end it is another import, which finds what is stored already.
type Upload struct {
	File     *os.File
	Body     io.Reader // what there is to read of a File that can be read only once; nil for one that can be read again
	From     string    // what the lines are; "" looks at the content
	Session  string    // the session's id, for a file of another source
	Settings string    // JSON of new sessions, for a file of another source; "" for none
	Branch   string    // the branch of such a file that is imported, "" for the one that was gone on with
	Strict   bool      // such a file is refused if something in it is not imported
	// Progress is called several times a second, with how many bytes of the file have been sent.
	Progress func(i protocol.Import, sent int64)
}

// The import is read again after a second while its lines are sent; between, what has been sent is reported.
const (
	progressEvery  = 200 * time.Millisecond
	progressUnread = 5
)

// Upload streams a file, and returns the import at its end. Where the connection or the server fails, it continues from
// the lines that are stored, as long as some are in each try.
func (c *Client) Upload(ctx context.Context, u Upload) (i protocol.Import, err error) {
	info, err := u.File.Stat()
	if err != nil {
		return i, err
	}
	o := Options{Key: u.key(info), Query: Query{"more": true, "from": u.From, "session": u.Session}} // without any line
	begun, err := CreateImport.With(ctx, c, o)
	if err == nil && begun.Value.State.Ended() {
		o.Key = uuid.NewString()
		begun, err = CreateImport.With(ctx, c, o)
	}
	i = begun.Value
	for err == nil && !i.State.Ended() {
		u.Progress(i, 0)
		fed, cause := c.feed(ctx, u, i, info)
		if cause == nil {
			return fed, nil
		}
		now, unread := ReadImport.Call(ctx, c, i.ID) // it waits for the server
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
	file := fmt.Sprintf("%q %d %d %q %q", path, info.Size(), info.ModTime().UnixNano(), u.From, u.Session+u.manner())
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(file)).String()
}

// manner returns in which way else than most files one is imported, "" for none.
func (u *Upload) manner() string {
	if u.Branch == "" && !u.Strict {
		return ""
	}
	return fmt.Sprintf(" %q %t", u.Branch, u.Strict)
}

// feed sends the lines that the import does not have, once, and reports its progress meanwhile.
func (c *Client) feed(ctx context.Context, u Upload, i protocol.Import, info os.FileInfo) (protocol.Import, error) {
	query := Query{"from_line": 1, "more": false, "settings": u.Settings, "branch": u.Branch, "strict": u.Strict}
	sent := &counting{Reader: io.NopCloser(u.File)}
	switch {
	case u.Body != nil:
		sent.Reader = u.Body
	case info.Mode().IsRegular():
		offset := int64(0)
		// Files of other sources are sent whole, and so is a packed file: the import counts what was in it.
		if i.From != nil && *i.From == archive.Source && !u.isPacked() {
			offset = i.Bytes
			query["from_line"] = i.Progress.Done + 1
		}
		sent.Reader = io.NewSectionReader(u.File, offset, info.Size()-offset)
		sent.n.Store(offset)
	}
	watched, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.watch(watched, i, func(i protocol.Import) { u.Progress(i, sent.n.Load()) })
	}()
	defer func() {
		stop()
		<-done
	}()
	const route = "POST imports/{import}"
	req, err := c.request(ctx, route, Options{Query: query, Body: sent}, []any{i.ID})
	if err != nil {
		return i, err
	}
	body, err := c.sendWhole(req)
	if err != nil {
		return i, err
	}
	fed, err := decode[protocol.Import](route, body)
	return fed.Value, err
}

// counting counts what is read.
type counting struct {
	io.Reader
	n atomic.Int64
}

// Read reads the next bytes.
func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// isPacked reports whether the file is in gzip or zstd.
func (u *Upload) isPacked() bool {
	head := make([]byte, 4)
	n, _ := u.File.ReadAt(head, 0)
	return packed.Coding(head[:n]) != ""
}

// watch reports an import's progress until ctx ends. It does not wait for a server that is not ready.
func (c *Client) watch(ctx context.Context, i protocol.Import, report func(protocol.Import)) {
	impatient := *c
	impatient.Patience = 0
	for n := 1; c.Sleep(ctx, progressEvery) == nil; n++ {
		if n%progressUnread == 0 {
			if now, err := ReadImport.Call(ctx, &impatient, i.ID); err == nil {
				i = now.Value
			}
		}
		report(i)
	}
}
