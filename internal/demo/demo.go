// Package demo shows what Varve does: it imports conversations, waits until the workers have compacted the long ones,
// reads all that was trimmed back, and compares it and the logs with the files, byte for byte.
//
// Start at Demo.Run. It talks to the API alone; varve demo starts the API for it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
	"github.com/varve-dev/varve/samples"
)

// The policy of the demonstration: sessions are compacted at 60,000 tokens, down to 30,000.
const (
	window  = 75_000
	trigger = 0.8
	target  = 0.4

	threshold = trigger * window // tokens
)

// patience is how long the workers may take after the last append.
const patience = 2 * time.Minute

// Demo is one demonstration.
type Demo struct {
	Dir   string // where the samples are written
	API   *client.Client
	Out   io.Writer // the report
	Notes io.Writer // what happens meanwhile
	Width int       // of the terminal, in characters

	sessions []shownSession
	files    []*importer.File
}

// shownSession is one conversation: what its file holds and what became of it.
type shownSession struct {
	file  string
	conv  importer.Conversation
	state protocol.Session
	runs  []session.Run // newest first
	kept  []protocol.Result
}

// Run demonstrates with files, or with the samples that Varve has. It returns an error unless every message and every
// trimmed result came back byte for byte.
func (d *Demo) Run(ctx context.Context, files []string) error {
	if len(files) == 0 {
		var err error
		if files, err = writeSamples(filepath.Join(d.Dir, "samples")); err != nil {
			return err
		}
	}
	problems := d.load(ctx, files)
	if len(d.sessions) == 0 {
		return errors.Join(append(problems, errors.New("there is nothing to show"))...)
	}
	if err := d.wait(ctx); err != nil {
		return errors.Join(append(problems, err)...)
	}
	for i := range d.sessions {
		s := &d.sessions[i]
		kept, err := d.API.Results(ctx, s.conv.ID, math.MaxInt)
		if err != nil {
			return err
		}
		s.kept = values(kept)
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

func values[T any](answers []client.Answer[T]) []T {
	list := make([]T, len(answers))
	for i := range answers {
		list[i] = answers[i].Value
	}
	return list
}

// writeSamples writes the conversations that Varve has to a folder and returns their names.
func writeSamples(dir string) ([]string, error) {
	names, err := fs.Glob(samples.Files, "*.json")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, samples.Files); err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names, nil
}

// load imports the files. One that cannot be imported is a problem, but does not keep the others from being shown.
func (d *Demo) load(ctx context.Context, files []string) []error {
	fmt.Fprintf(d.Notes, "importing %s\n", terminal.Count(len(files), "file"))
	var problems []error
	for _, file := range files {
		if err := d.add(ctx, file); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
		}
		if ctx.Err() != nil {
			return []error{ctx.Err()}
		}
	}
	d.fileSummary()
	return problems
}

// add reads a file, with which everything is compared later, and imports it.
func (d *Demo) add(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return errors.Unwrap(err)
	}
	read, err := importer.Read(importer.SessionID(file), data, importer.Auto)
	if err != nil {
		return err
	}
	d.files = append(d.files, read)
	d.remarks(file, &read.Report)
	for _, conv := range read.Conversations {
		if len(conv.Messages) == 0 {
			continue
		}
		_, err := d.API.PutSession(ctx, conv.ID, protocol.SessionSettings{
			Format: conv.Format, WindowTokens: window, Policy: fmt.Appendf(nil, `{"trigger": %g, "target": %g}`, trigger, target),
		})
		if err != nil {
			return err
		}
		d.sessions = append(d.sessions, shownSession{file: file, conv: conv})
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = d.API.Upload(ctx, client.Upload{
		File:     in,
		Import:   client.NewImport{Key: uuid.NewString(), Session: importer.SessionID(file)},
		Progress: func(protocol.Import) {},
	})
	return err
}

// wait returns when every run has ended and every session over its trigger has had one.
func (d *Demo) wait(ctx context.Context) error {
	fmt.Fprintf(d.Notes, "waiting for the workers\n")
	for ends := time.Now().Add(patience); ; {
		busy := 0
		for i := range d.sessions {
			s := &d.sessions[i]
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
			return fmt.Errorf("after %s the workers have not finished %s:%s", patience, terminal.Count(busy, "session"), d.unsettled())
		}
		if err := d.API.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// refresh reads the runs before the session: a run that has ended is then in the session's figures, too.
func (d *Demo) refresh(ctx context.Context, s *shownSession) error {
	runs, err := d.API.Runs(ctx, s.conv.ID, math.MaxInt)
	if err != nil {
		return err
	}
	s.runs = values(runs)
	state, err := d.API.Session(ctx, s.conv.ID)
	s.state = state.Value
	return err
}

func (s *shownSession) settled() bool {
	for _, r := range s.runs {
		if !r.State.Ended() {
			return false
		}
	}
	return len(s.runs) > 0 || s.state.ContextTokens < threshold
}

func (d *Demo) unsettled() (text string) {
	for _, s := range d.sessions {
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
