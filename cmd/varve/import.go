package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type importCommand struct {
	Files        []string        `arg:"" name:"file" help:"Conversations or exports, also packed; - for stdin."`
	From         importer.Source `help:"What the files are, e.g. openai-chat or codex; by their content if not given."`
	Session      string          `help:"Session id, for one file; the file's name without its extension if not given."`
	Rejected     string          `help:"Folder for what could not be imported; DATA/import if not given."`
	Policy       string          `help:"Policy of new sessions, a merge patch over the default: JSON, or a file of it."`
	Model        string          `help:"Model of new sessions."`
	WindowTokens int             `help:"Context window of new sessions, in tokens."`
	Branch       string          `help:"Branch of a conversation that went back and on again, as a note names it."`
	Strict       bool            `help:"Import nothing of a file of which something would be left out."`
}

// Help returns what is shown below the flags, with every source.
func (c *importCommand) Help() string { return helpText("import") + "\n\n" + sourcesHelp() }

func sourcesHelp() string {
	return fmt.Sprintf("What can be imported, each by its name for --from:\n\n%s  %-18s%s\n", importer.Kinds(),
		archive.Source, "exports of Varve")
}

// Validate returns an error for files that would end up in one session.
func (c *importCommand) Validate() error {
	if c.Session != "" && len(c.Files) > 1 {
		return errors.New("--session names one session, but there are several files")
	}
	known := append(importer.Sources(), archive.Source)
	if c.From != importer.Auto && !slices.Contains(known, c.From) {
		return fmt.Errorf("--from cannot be %s: varve import --help lists the sources", c.From)
	}
	if len(c.Session) > session.MaxIDBytes {
		return fmt.Errorf("--session has %d bytes: the limit is %d", len(c.Session), session.MaxIDBytes)
	}
	seen := map[string]string{}
	for _, file := range c.Files {
		id := importer.SessionID(file)
		if earlier, taken := seen[id]; taken {
			return fmt.Errorf("%s and %s would both be session %s: import them one by one with --session",
				earlier, file, id)
		}
		seen[id] = file
	}
	return nil
}

// Run imports file after file. A file that fails does not stop those after it, unless they would fail alike.
func (c *importCommand) Run(ctx context.Context, settings *config.Client, to *command.Console) error {
	if c.Rejected == "" {
		c.Rejected = filepath.Join(settings.Data, "import")
	}
	policy, err := command.ReadPolicy(c.Policy)
	if err != nil {
		return err
	}
	if err := c.mustExist(); err != nil {
		return err
	}
	run := newImportRun(c, to.API, policy)
	problems := run.all(ctx)
	run.progress.Finish()
	if err := run.print(to.Out, os.Stderr, to.JSON); err != nil {
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

// newImportRun returns a run whose progress goes to standard error.
func newImportRun(c *importCommand, api *client.Client, policy json.RawMessage) *importRun {
	var total int64
	for _, file := range c.Files {
		if info, err := fileInfo(file); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return &importRun{importCommand: c, api: api, policy: policy, progress: newProgress(os.Stderr, total)}
}

// all imports the files and returns an error for each that failed.
func (r *importRun) all(ctx context.Context) []error {
	var problems []error
	for _, file := range r.Files {
		done := imported{
			File: file, Source: string(r.From),
			Sessions: []importedSession{}, Rejected: []rejection{}, Notes: []protocol.ImportNote{},
		}
		err := r.file(ctx, &done)
		if err != nil {
			done.Error = err.Error()
			problems = append(problems, fmt.Errorf("%s: %w", terminal.Printable(file), err))
			r.progress.failures++
		}
		r.files = append(r.files, done)
		if ctx.Err() != nil {
			text := fmt.Sprintf("interrupted in %s; nothing is lost, the same command continues from there:\n  %s",
				terminal.Printable(file), terminal.ShellLine(os.Args...))
			return []error{&failure{exitInterrupted, text}}
		}
		if code := exitCode(err); err != nil && (code == exitUnavailable || code == exitAuth) {
			return problems
		}
	}
	return problems
}

// file imports one file, and reads what became of it.
func (r *importRun) file(ctx context.Context, done *imported) error {
	in, err := openImport(done.File)
	if err != nil {
		return err
	}
	defer in.Close()
	upload := client.Upload{
		File: in.File, Body: in.body, From: string(r.From), Session: r.Session, Branch: r.Branch, Strict: r.Strict,
		Progress: func(i protocol.Import, sent int64) {
			r.progress.read = sent
			r.progress.set(in.bytesDone(&i, sent), &i)
		},
	}
	if err := r.prepare(in, done.File, &upload); err != nil {
		return err
	}
	defer r.progress.next(in.size)
	i, err := r.api.Upload(ctx, upload)
	if err != nil {
		return err
	}
	upload.Progress(i, in.size)
	return r.collect(ctx, done, in.File, &i)
}

// prepare names the session of a file of another source, and sets the settings that the flags have for new sessions. An
// export names its sessions and their settings itself.
func (r *importRun) prepare(in *importFile, name string, upload *client.Upload) error {
	hasSettings := r.policy != nil || r.Model != "" || r.WindowTokens != 0
	isArchive := r.From == archive.Source || r.From == importer.Auto && archive.Begins(in.head)
	switch {
	case isArchive && (r.Session != "" || hasSettings):
		return command.Usage("an export names its sessions and their settings itself: " +
			"leave --session, --policy, --model and --window-tokens out")
	case isArchive:
		return nil
	case name == stdin && r.Session == "":
		return command.Usage("standard input has no file name: name the session of what comes from it with --session")
	}
	upload.Session = cmp.Or(r.Session, importer.SessionID(name))
	if !hasSettings {
		return nil
	}
	settings, err := json.Marshal(protocol.SessionSettings{
		Model: r.Model, WindowTokens: r.WindowTokens, Policy: r.policy,
	})
	upload.Settings = string(settings)
	return err
}
