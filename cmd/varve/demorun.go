package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
)

// demonstration imports conversations, waits for the workers, and compares all that comes back with the files.
type demonstration struct {
	dir    string
	client *Client
	out    io.Writer
	width  int // of the terminal
	shown  []demoSession
}

// demoSession is one conversation: what its file holds and what became of it.
type demoSession struct {
	file  string
	conv  importer.Conversation
	state demoState
	runs  []session.Run // newest first
	kept  []demoResult
}

// demoState is a session's size.
type demoState struct {
	LastSeq       int64 `json:"last_seq"`
	TotalTokens   int64 `json:"total_tokens"`
	ContextTokens int64 `json:"context_tokens"`
}

// demoResult is a persisted result as the API lists it.
type demoResult struct {
	Ref    string `json:"ref"`
	Seq    int64  `json:"seq"`
	Part   int    `json:"part"`
	Tool   string `json:"tool"`
	Bytes  int64  `json:"bytes"`
	Lines  int64  `json:"lines"`
	SHA256 string `json:"sha256"`
}

func (d *demonstration) run(ctx context.Context, files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = shippedSamples(filepath.Join(d.dir, "samples")); err != nil {
			return err
		}
	}
	problems := d.load(ctx, files)
	if len(d.shown) == 0 {
		return errors.Join(append(problems, errors.New("there is nothing to show"))...)
	}
	if err := d.wait(ctx); err != nil {
		return errors.Join(append(problems, err)...)
	}
	for i := range d.shown {
		if err := d.collect(ctx, &d.shown[i]); err != nil {
			return err
		}
	}
	if err := d.table(); err != nil {
		return err
	}
	problems = append(problems, d.readBack(ctx), d.beforeAndAfter(ctx), d.compareLogs(ctx))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return d.next()
}

// load imports the files with the demonstration's policy. A file that cannot be imported is a problem, but does not keep
// the others from being shown.
func (d *demonstration) load(ctx context.Context, files []string) []error {
	command := &importCommand{Files: files, WindowTokens: demoWindow, Rejected: filepath.Join(d.dir, "import")}
	if err := command.Validate(); err != nil {
		return []error{err}
	}
	run := importRun{importCommand: command, client: d.client, progress: newProgress(os.Stderr, sizeOf(files))}
	run.policy = fmt.Appendf(nil, `{"trigger": %g, "target": %g}`, demoTrigger, demoTarget)
	fmt.Fprintf(os.Stderr, "importing %s\n", count(len(files), "file"))
	problems := run.all(ctx)
	run.progress.finish()
	for _, f := range run.files {
		d.add(f.File)
	}
	d.read(run.files)
	return problems
}

// add reads a file's conversations a second time: they are what everything is compared with. A file that cannot be read
// is a problem of the import already.
func (d *demonstration) add(file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return
	}
	f, err := importer.Read(importer.SessionID(file), data, importer.Auto)
	if err != nil {
		return
	}
	for _, conv := range f.Conversations {
		if len(conv.Messages) > 0 {
			d.shown = append(d.shown, demoSession{file: file, conv: conv})
		}
	}
}

func sizeOf(files []string) (total int64) {
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			total += info.Size()
		}
	}
	return total
}

// wait returns when no session has a run that has not ended, nor is over its trigger without ever having had one.
func (d *demonstration) wait(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "waiting for the workers\n")
	for ends := time.Now().Add(demoPatience); ; {
		busy := 0
		for i := range d.shown {
			s := &d.shown[i]
			if err := d.refresh(ctx, s); err != nil {
				return err
			}
			if !s.settled() {
				busy++
			}
		}
		switch {
		case busy == 0:
			return nil
		case time.Now().After(ends):
			return fmt.Errorf("after %s the workers have not finished %s:%s", demoPatience, count(busy, "session"), d.unsettled())
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// refresh reads the runs before the session: a run that has ended is then in the session's figures, too.
func (d *demonstration) refresh(ctx context.Context, s *demoSession) (err error) {
	if s.runs, err = list[session.Run](ctx, d.client, math.MaxInt, "sessions", s.conv.ID, "runs"); err != nil {
		return err
	}
	_, err = d.client.decode(ctx, call{method: http.MethodGet, path: []string{"sessions", s.conv.ID}}, &s.state)
	return err
}

func (s *demoSession) settled() bool {
	for _, r := range s.runs {
		if !r.State.Ended() {
			return false
		}
	}
	return len(s.runs) > 0 || s.state.ContextTokens < demoThreshold
}

func (d *demonstration) unsettled() (text string) {
	for _, s := range d.shown {
		if s.settled() {
			continue
		}
		text += fmt.Sprintf("\n  %s has %d tokens", s.conv.ID, s.state.ContextTokens)
		if len(s.runs) > 0 && s.runs[0].Error != nil {
			text += ": " + *s.runs[0].Error
		}
	}
	return text
}

func (d *demonstration) collect(ctx context.Context, s *demoSession) (err error) {
	s.kept, err = list[demoResult](ctx, d.client, math.MaxInt, "sessions", s.conv.ID, "results")
	return err
}

// crossing is the first compaction that the size of the session asked for, nil for none.
func (s *demoSession) crossing() *session.Run {
	for i := len(s.runs) - 1; i >= 0; i-- {
		if r := &s.runs[i]; r.State == session.RunDone && r.FinishedAt != nil {
			return r
		}
	}
	return nil
}

// page of the log, as the API answers it.
type logPage struct {
	Data []struct {
		Seq     int64           `json:"seq"`
		Message json.RawMessage `json:"message"`
	} `json:"data"`
}
