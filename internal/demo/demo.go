// Package demo shows what Varve does with conversations that were imported from files: it waits until the workers have
// compacted the long ones, reads all that was trimmed back, and compares it and the logs with the files, byte for byte.
//
// Start at Demo.Add and Demo.Run. It talks to the API alone; varve demo starts the API and imports the files.
package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/samples"
)

// Window is that of the sessions.
const (
	Window = 75_000

	threshold = 60_000
	target    = 30_000
)

// Policy returns the policy of the sessions: they are compacted at 60,000 tokens, down to 30,000, no run waits until a
// session is idle, and the model of that name, "" for none, writes the summaries.
func Policy(model string) []byte {
	return fmt.Appendf(nil, `{"trigger": 0.8, "target": 0.4, "idle": {"enabled": false}, "summarise": {"model": %q}}`,
		model)
}

// patience is how long the workers may take after the last append.
const patience = 2 * time.Minute

// Demo is one demonstration.
type Demo struct {
	Dir   string // the data directory
	API   *client.Client
	Out   io.Writer // the report
	Notes io.Writer // what happens meanwhile
	Width int       // of the terminal, in characters
	Model string    // that writes summaries, "" for none

	sessions []*shownSession
}

// shownSession is one conversation: what its file holds and what became of it.
type shownSession struct {
	file  string
	conv  importer.Conversation
	state protocol.Session
	runs  []client.Answer[session.Run] // newest first
	kept  []client.Answer[protocol.Result]
}

// WriteSamples writes the conversations that Varve has to a folder and returns the names of the files.
func WriteSamples(dir string) ([]string, error) {
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

// Add reads a file that was imported, with which everything is compared later.
func (d *Demo) Add(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	read, err := importer.Read(ctx, importer.SessionID(file), data, importer.Auto)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, conv := range read.Conversations {
		if len(conv.Messages) > 0 {
			d.sessions = append(d.sessions, &shownSession{file: file, conv: conv})
		}
	}
	return nil
}

// Run demonstrates. It returns an error unless every message and every trimmed result came back byte for byte.
func (d *Demo) Run(ctx context.Context) error {
	if len(d.sessions) == 0 {
		return errors.New("there is nothing to show")
	}
	if err := errors.Join(d.wait(ctx), d.waitForModel(ctx)); err != nil {
		return err
	}
	if err := d.table(); err != nil {
		return err
	}
	if err := errors.Join(d.readBack(ctx), d.checkHandles(ctx), d.firstTrimmed(ctx), d.summaries(ctx),
		d.compareLogs(ctx)); err != nil {
		return err
	}
	return d.next()
}

// wait returns when every run has ended and every session over its trigger has had one.
func (d *Demo) wait(ctx context.Context) error {
	fmt.Fprintf(d.Notes, "waiting for the workers\n")
	for ends := time.Now().Add(patience); ; {
		pending := ""
		for _, s := range d.sessions {
			if err := d.refresh(ctx, s); err != nil {
				return err
			}
			pending += s.pending()
		}
		if pending == "" {
			return nil
		}
		if time.Now().After(ends) {
			return fmt.Errorf("after %s the workers have not finished:%s", patience, pending)
		}
		if err := d.API.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// refresh reads the runs before the session: a run that has ended is then in the session's figures, too.
func (d *Demo) refresh(ctx context.Context, s *shownSession) (err error) {
	if s.runs, err = client.ListRuns.All(ctx, d.API, math.MaxInt, s.conv.ID); err != nil {
		return err
	}
	state, err := client.ReadSession.Call(ctx, d.API, s.conv.ID)
	if err != nil {
		return err
	}
	s.state = state.Value
	s.kept, err = client.ListResults.All(ctx, d.API, math.MaxInt, s.conv.ID)
	return err
}

// pending returns in words what the session waits for, "" if no run of it is to come.
func (s *shownSession) pending() string {
	running := slices.ContainsFunc(s.runs, func(r client.Answer[session.Run]) bool { return !r.Value.State.Ended() })
	if !running && (len(s.runs) > 0 || s.state.ContextTokens < threshold) {
		return ""
	}
	text := fmt.Sprintf("\n  %s has %d tokens", s.conv.ID, s.state.ContextTokens)
	if len(s.runs) > 0 && s.runs[0].Value.Error != nil {
		text += ": " + *s.runs[0].Value.Error
	}
	return text
}

// readBack reads every persisted result from the API and compares it with the API's header and with the file. It lists
// one result of each of the first three sessions that have some.
func (d *Demo) readBack(ctx context.Context) error {
	var total, listed int
	var size int64
	fmt.Fprintf(d.Out, "\nTrimmed results, read back:\n")
	for _, s := range d.sessions {
		for j := range s.kept {
			r := &s.kept[j].Value
			if err := d.compareResult(ctx, s, r); err != nil {
				return fmt.Errorf("session %s, result %s: %w", s.conv.ID, r.Ref, err)
			}
			if j == len(s.kept)/2 && listed < 3 {
				listed++
				fmt.Fprintf(d.Out, "  %s of %s: %s, %d lines, %s bytes, sha256 %.12s…\n", r.Ref, s.conv.ID,
					terminal.Printable(r.Tool), r.Lines, terminal.Thousands(r.Bytes), r.SHA256)
			}
			size += r.Bytes
		}
		total += len(s.kept)
	}
	fmt.Fprintf(d.Out,
		"  %s: each has the SHA-256 that its header names and that of the original in the file (%s bytes)\n",
		terminal.Count(total, "result"), terminal.Thousands(size))
	return nil
}

// compareResult reads a persisted result and compares its SHA-256 with those of the header, the list and the file.
func (d *Demo) compareResult(ctx context.Context, s *shownSession, r *protocol.Result) error {
	body, named, err := d.API.RawResult(ctx, s.conv.ID, r.Ref)
	if err != nil {
		return err
	}
	defer body.Close()
	read, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	original, err := originalResult(s.conv.Format, s.conv.Messages[r.Seq-1].Body, r.Part)
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(read))
	if sum != named || sum != r.SHA256 || !bytes.Equal(read, original) {
		return fmt.Errorf(
			"what was read has the SHA-256 %s, its header has %s, the list %s, and message %d of %s %x",
			sum, named, r.SHA256, r.Seq, filepath.Base(s.file), sha256.Sum256(original))
	}
	return nil
}

// originalResult returns a tool result of an imported message: its text, or its JSON where it is not text.
func originalResult(format session.Format, body []byte, part int) ([]byte, error) {
	facts, err := wire.Inspect(format, body)
	if err != nil {
		return nil, err
	}
	if part >= len(facts.Parts) {
		return nil, fmt.Errorf("the message has %d parts, not %d", len(facts.Parts), part+1)
	}
	return wire.ResultText(format, body, facts.Parts[part]).Stored, nil
}

// compareLogs reads every log and compares it with the file, byte for byte.
func (d *Demo) compareLogs(ctx context.Context) error {
	messages := int64(0)
	size := int64(0)
	for _, s := range d.sessions {
		if err := d.compareLog(ctx, s); err != nil {
			return fmt.Errorf("session %s: %w", s.conv.ID, err)
		}
		messages += s.state.LastSeq
		for _, m := range s.conv.Messages {
			size += int64(len(m.Body))
		}
	}
	fmt.Fprintf(d.Out, "\nThe logs: all %s messages (%s bytes) came back byte for byte as they are in the files.\n",
		terminal.Thousands(messages), terminal.Thousands(size))
	return nil
}

// compareLog reads the log of a session and compares it with the file.
func (d *Demo) compareLog(ctx context.Context, s *shownSession) error {
	if got, want := s.state.LastSeq, int64(len(s.conv.Messages)); got != want {
		return fmt.Errorf("it has %d messages, the file %d", got, want)
	}
	for next := int64(1); next <= s.state.LastSeq; {
		query := client.Query{"from_seq": next, "limit": 200}
		page, err := client.ListMessages.With(ctx, d.API, client.Options{Query: query}, s.conv.ID)
		if err != nil {
			return err
		}
		if len(page.Value.Data) == 0 {
			return fmt.Errorf("its log ends before message %d of %d", next, s.state.LastSeq)
		}
		for _, m := range page.Value.Data {
			if m.Seq != next || !bytes.Equal(m.Message, s.conv.Messages[next-1].Body) {
				return fmt.Errorf("message %d is not the one in %s", m.Seq, s.file)
			}
			next++
		}
	}
	return nil
}
