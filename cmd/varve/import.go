package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type importCommand struct {
	Files        []string        `arg:"" name:"file" help:"Files of conversations: exports of Varve, a provider's messages, requests and responses, or what coding agents and benchmarks write."`
	From         importer.Source `help:"What the files are, such as openai-chat or codex. Without it, their content decides."`
	Session      string          `help:"Session id, for one file. The file's name without its extension if not given."`
	Rejected     string          `help:"Folder for what could not be imported; DATA/import if not given."`
	Policy       string          `help:"Policy of new sessions, a merge patch over the default one: JSON, or a file of it."`
	Model        string          `help:"Model of new sessions."`
	WindowTokens int             `help:"Context window of new sessions, in tokens."`
}

// Help is shown below the flags.
func (c *importCommand) Help() string {
	return `Each conversation becomes a session named like its file. The same import run again continues where it stopped and
never stores a message twice. Lines that cannot be imported are reported and kept in the folder of --rejected.

It ends with 0 if all of every file is stored. A file from which nothing could be used, or a line that could not be
imported, does not stop the rest, but makes it end with 1.

An export of Varve brings its sessions with their own names and settings.

  varve import ~/.claude/projects/*/*.jsonl
  varve import tenant.ndjson
  varve import --session chat-42 --model gpt-4o chat.json`
}

// Validate refuses files that would end up in one session.
func (c *importCommand) Validate() error {
	if c.Session != "" && len(c.Files) > 1 {
		return errors.New("--session names one session, but there are several files")
	}
	if known := append(importer.Sources(), archive.Source); c.From != importer.Auto && !slices.Contains(known, c.From) {
		return fmt.Errorf("--from must be one of %q, not %s", known, c.From)
	}
	if len(c.Session) > session.MaxIDBytes {
		return fmt.Errorf("--session has %d bytes: the limit is %d", len(c.Session), session.MaxIDBytes)
	}
	seen := map[string]string{}
	for _, file := range c.Files {
		id := importer.SessionID(file)
		if earlier, taken := seen[id]; taken {
			return fmt.Errorf("%s and %s would both be session %s: import them one by one with --session", earlier, file, id)
		}
		seen[id] = file
	}
	return nil
}

// Run imports file after file. A file that fails does not stop those after it, unless they would fail alike.
func (c *importCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	if c.Rejected == "" {
		c.Rejected = filepath.Join(settings.Data, "import")
	}
	policy, err := readPolicy(c.Policy)
	if err != nil {
		return err
	}
	var total int64
	for _, file := range c.Files {
		if info, err := os.Stat(file); err == nil {
			total += info.Size()
		}
	}
	run := importRun{importCommand: c, api: api, policy: policy, progress: newProgress(os.Stderr, total)}
	problems := run.all(ctx)
	run.progress.finish()
	if err := run.print(out, os.Stderr, settings.JSON); err != nil {
		return err
	}
	return errors.Join(append(problems, run.incomplete())...)
}

// importRun is one run of the command.
type importRun struct {
	*importCommand
	api      *client.Client
	policy   json.RawMessage // of new sessions
	progress *progress
	files    []imported
}

func (r *importRun) all(ctx context.Context) []error {
	var problems []error
	for _, file := range r.Files {
		done, err := r.file(ctx, file)
		if err != nil {
			done.Error = err.Error()
			problems = append(problems, fmt.Errorf("%s: %w", terminal.Printable(file), err))
			r.progress.fail()
		}
		r.files = append(r.files, done)
		if ctx.Err() != nil {
			return []error{&interruptedError{stopped: file, args: os.Args}}
		}
		if code := exitCode(err); err != nil && (code == exitUnavailable || code == exitAuth) {
			return problems
		}
	}
	return problems
}

// file imports one file, and reads what became of it.
func (r *importRun) file(ctx context.Context, name string) (done imported, err error) {
	done = imported{File: name, Source: string(r.From), Sessions: []importedSession{}, Rejected: []rejection{}, Notes: []protocol.ImportNote{}}
	in, err := os.Open(name)
	if err != nil {
		return done, errors.Unwrap(err)
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return done, err
	case info.IsDir():
		return done, errors.New("it is a directory")
	}
	upload := client.Upload{
		File: in, Import: client.NewImport{From: string(r.From), Session: r.Session},
		Progress: func(i protocol.Import) { r.progress.set(bytesDone(&i, info.Size()), &i) },
	}
	hasSettings := r.policy != nil || r.Model != "" || r.WindowTokens != 0
	switch {
	case !r.isArchive(in):
		upload.Import.Session = cmp.Or(r.Session, importer.SessionID(name))
		if hasSettings {
			err = r.createSessions(ctx, name, upload.Import.Session)
		}
	case r.Session != "" || hasSettings:
		err = &usageError{"an export names its sessions and their settings itself: leave --session, --policy, --model and --window-tokens out"}
	}
	if err != nil {
		return done, err
	}
	defer r.progress.next(info.Size())
	mark := openBookmark(filepath.Join(r.Rejected, importer.SessionID(name)+".import.json"), r.api.Base.String(), info, upload.Import)
	upload.Import.Key = mark.Key
	if err := mark.save(); err != nil {
		return done, err
	}
	i, err := r.api.Upload(ctx, upload)
	if i.Ended() {
		err = errors.Join(err, mark.remove())
	}
	if err != nil {
		return done, err
	}
	upload.Progress(i)
	return done, r.collect(ctx, &done, in, &i)
}

// createSessions creates the sessions of a file with the settings of the flags, before a message with the defaults does.
// The file is read for their names; sessions that are there stay as they are.
func (r *importRun) createSessions(ctx context.Context, name, id string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return errors.Unwrap(err)
	}
	f, err := importer.Read(id, data, r.From)
	if err != nil {
		return err
	}
	for _, conv := range f.Conversations {
		if len(conv.Messages) == 0 {
			continue
		}
		_, err := r.api.PutSession(ctx, conv.ID, protocol.SessionSettings{
			Format: conv.Format, Model: r.Model, WindowTokens: r.WindowTokens, Policy: r.policy,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isArchive reports whether a file is an export of Varve. A file that cannot be read twice is not taken for one.
func (r *importRun) isArchive(file *os.File) bool {
	if r.From != importer.Auto {
		return r.From == archive.Source
	}
	head := make([]byte, archive.HeadBytes)
	n, _ := file.ReadAt(head, 0)
	return archive.Begins(head[:n])
}

// bytesDone returns how many bytes of a file are imported.
func bytesDone(i *protocol.Import, size int64) int64 {
	total := i.Progress.Total
	if total == nil || *total == 0 || i.From != nil && *i.From == archive.Source {
		return i.Bytes
	}
	return int64(float64(size) * float64(i.Progress.Done) / float64(*total))
}

// interruptedError tells how to continue an import that was stopped.
type interruptedError struct {
	stopped string
	args    []string
}

func (e *interruptedError) Error() string {
	return fmt.Sprintf("interrupted in %s; nothing is lost, the same command continues from there:\n  %s",
		terminal.Printable(e.stopped), terminal.ShellLine(e.args...))
}

func (e *interruptedError) Unwrap() error { return context.Canceled }
