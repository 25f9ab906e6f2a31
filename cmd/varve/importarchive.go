package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/importer"
)

// pieceBytes is how much of an export is sent at a time. Each piece is acknowledged, whole or in part.
const pieceBytes = 4 << 20

// archiveImport is an import as the API answers it.
type archiveImport struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Progress struct {
		Done int64 `json:"done"`
	} `json:"progress"`
	Bytes      int64 `json:"bytes"`
	Sessions   int64 `json:"sessions"`
	Messages   int64 `json:"messages"`
	Duplicates int64 `json:"duplicates"`
	Rejected   int64 `json:"rejected"`
	Rejections []struct {
		Line   int    `json:"line"`
		Detail string `json:"detail"`
	} `json:"rejections"`
}

// bookmark says which import a file belongs to that was not finished. It is kept beside what could not be read.
type bookmark struct {
	URL      string    `json:"url"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Import   string    `json:"import"`
}

// isArchive reports whether a file is an export of Varve's. What cannot be read twice is taken for none.
func isArchive(file *os.File) bool {
	head := make([]byte, archive.HeadBytes)
	n, _ := file.ReadAt(head, 0)
	return archive.Begins(head[:n])
}

// archive imports an export of Varve's, piece by piece, from where an earlier run of the same command stopped.
func (r *importRun) archive(ctx context.Context, name string, file *os.File) (done imported, err error) {
	done = newImported(name, archive.Source)
	if r.Session != "" || r.Policy != "" || r.Model != "" || r.WindowTokens != 0 {
		return done, &usageError{"an export names its sessions and their settings itself: leave --session, --policy, --model and --window-tokens out"}
	}
	info, err := file.Stat()
	if err != nil {
		return done, err
	}
	defer func() { r.before += info.Size() }()
	mark := filepath.Join(r.Rejected, importer.SessionID(name)+".import.json")
	current, err := r.begin(ctx, mark, bookmark{URL: r.client.base.String(), Size: info.Size(), Modified: info.ModTime()})
	if err != nil {
		return done, err
	}
	done.Import = &current
	if err := r.pieces(ctx, file, &current); err != nil {
		return done, err
	}
	for _, bad := range current.Rejections {
		done.Rejected = append(done.Rejected, rejection{Line: bad.Line, Reason: bad.Detail})
	}
	done.Lines, done.Imported = int(current.Progress.Done), int(current.Progress.Done-current.Rejected)
	return done, os.Remove(mark)
}

// begin finds the import that the bookmark names, if it is of the same file and takes lines, or makes one and names it.
func (r *importRun) begin(ctx context.Context, path string, now bookmark) (found archiveImport, err error) {
	var last bookmark
	if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &last) == nil {
		now.Import = last.Import
		if last.URL == now.URL && last.Size == now.Size && last.Modified.Equal(now.Modified) {
			_, err = r.client.decode(ctx, call{method: http.MethodGet, path: []string{"imports", last.Import}}, &found)
			if err == nil && (found.State == "queued" || found.State == "running") {
				return found, nil
			}
			if err != nil && exitCode(err) != exitNotFound {
				return found, err
			}
		}
	}
	k := call{
		method: http.MethodPost, path: []string{"imports"}, query: url.Values{"from": {archive.Source}, "more": {"true"}},
		ok: []int{http.StatusAccepted}, idempotency: uuid.NewString(),
	}
	if _, err = r.client.decode(ctx, k, &found); err != nil {
		return found, err
	}
	now.Import = found.ID
	text, err := json.Marshal(now)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	return found, err
}

// pieces sends what the import does not have yet. A piece whose answer is lost is sent again: the lines that are stored
// of it are passed over.
func (r *importRun) pieces(ctx context.Context, file *os.File, i *archiveImport) error {
	if _, err := file.Seek(i.Bytes, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(file, 1<<20)
	stored := i.Messages + i.Duplicates
	r.progress.set(r.before+i.Bytes, int(stored))
	for {
		body, more, err := piece(in)
		if err != nil {
			return err
		}
		k := call{
			method: http.MethodPost, path: []string{"imports", i.ID}, body: body, ok: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
			query: url.Values{"from_line": {strconv.FormatInt(i.Progress.Done+1, 10)}, "more": {strconv.FormatBool(more)}},
		}
		from := i.Progress.Done + 1
		i.Rejections = nil
		if _, err := r.client.decode(ctx, k, i); err != nil {
			return fmt.Errorf("import %s, from line %d on: %w", i.ID, from, err)
		}
		r.progress.reject(i.Rejected)
		r.progress.set(r.before+i.Bytes, int(i.Messages+i.Duplicates-stored))
		if stored = i.Messages + i.Duplicates; !more {
			return nil
		}
	}
}

// piece reads whole lines, and whether there are others behind them.
func piece(in *bufio.Reader) (body []byte, more bool, err error) {
	for {
		line, err := in.ReadSlice('\n')
		body = append(body, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF:
			return body, false, nil
		case err != nil:
			return nil, false, err
		case len(body) >= pieceBytes:
			_, err := in.Peek(1)
			return body, err == nil, nil
		}
	}
}
