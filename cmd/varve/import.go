package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
)

type importCommand struct {
	Files        []string        `arg:"" name:"file" help:"Files of conversations: exports of Varve's, a provider's messages, requests and responses, or what coding agents and benchmarks write."`
	From         importer.Source `help:"What the files are, such as openai-chat or codex. Looks at the content if not given."`
	Session      string          `help:"Session id, for one file. The file's name without its extension if not given."`
	Rejected     string          `help:"Folder for what could not be read; DATA/import if not given."`
	Policy       string          `help:"Policy of new sessions, a merge patch over the default one: JSON, or a file of it."`
	Model        string          `help:"Model of new sessions."`
	WindowTokens int             `help:"Context window of new sessions, in tokens."`
}

// Help is shown below the flags.
func (c *importCommand) Help() string {
	return `Each conversation becomes a session named like its file. Running the same import again goes on where it stopped and
never stores a message twice. Lines that cannot be read are reported and kept in the folder of --rejected.

It ends with 0 if all of every file is stored. A file from which nothing could be used, or a line that could not be read,
does not stop the rest, but makes it end with 1.

An export of Varve's brings its sessions with their own names and settings.

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
		return fmt.Errorf("--from %s is none of %q", c.From, known)
	}
	if len(c.Session) > session.MaxIDBytes {
		return fmt.Errorf("--session has %d bytes: %d at most are possible", len(c.Session), session.MaxIDBytes)
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

// imported is what became of one file.
type imported struct {
	File         string          `json:"file"`
	Source       importer.Source `json:"source"`
	Sessions     []uploaded      `json:"sessions"`
	Lines        int             `json:"lines"`
	Imported     int             `json:"imported"`
	Skipped      map[string]int  `json:"skipped"`
	Rejected     []rejection     `json:"rejected"`
	RejectedFile string          `json:"rejected_file,omitempty"`
	Notes        []importer.Note `json:"notes"`
	Import       *archiveImport  `json:"import,omitempty"` // of an export
	Error        string          `json:"error,omitempty"`
}

func newImported(name string, from importer.Source) imported {
	return imported{File: name, Source: from, Sessions: []uploaded{}, Rejected: []rejection{}, Notes: []importer.Note{}}
}

// Run imports file after file. A file that fails does not stop those after it, unless they would fail alike.
func (c *importCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	if c.Rejected == "" {
		c.Rejected = filepath.Join(g.Data, "import")
	}
	run := importRun{importCommand: c, client: client}
	if run.policy, err = readPolicy(c.Policy); err != nil {
		return err
	}
	var total int64
	for _, file := range c.Files {
		if info, err := os.Stat(file); err == nil {
			total += info.Size()
		}
	}
	run.progress = newProgress(os.Stderr, total)
	problems := run.all(ctx)
	run.progress.finish()
	if err := run.print(os.Stdout, os.Stderr, g.JSON); err != nil {
		return err
	}
	return errors.Join(append(problems, run.incomplete())...)
}

// importRun is one run of the command.
type importRun struct {
	*importCommand
	client   *Client
	policy   json.RawMessage
	progress *progress
	files    []imported
	before   int64 // bytes of the files that are done
}

func (r *importRun) all(ctx context.Context) []error {
	var problems []error
	for _, file := range r.Files {
		done, err := r.file(ctx, file)
		if err != nil {
			done.Error = err.Error()
			problems = append(problems, fmt.Errorf("%s: %w", printable(file), err))
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

// file imports one file.
func (r *importRun) file(ctx context.Context, name string) (imported, error) {
	in, err := os.Open(name)
	if err != nil {
		return newImported(name, r.From), errors.Unwrap(err)
	}
	defer in.Close()
	if r.From == archive.Source || r.From == importer.Auto && isArchive(in) {
		return r.archive(ctx, name, in)
	}
	return r.foreign(ctx, name)
}

// foreign imports a file of another program. What could not be read is on disk before the first message is sent.
func (r *importRun) foreign(ctx context.Context, name string) (imported, error) {
	done := newImported(name, r.From)
	data, err := os.ReadFile(name)
	if err != nil {
		return done, errors.Unwrap(err)
	}
	defer func() { r.before += int64(len(data)) }()
	id := r.Session
	if id == "" {
		id = importer.SessionID(name)
	}
	f, err := importer.Read(id, data, r.From)
	if err != nil {
		return done, err
	}
	done.Source, done.Lines, done.Imported, done.Skipped = f.Source, f.Report.Lines, f.Report.Imported, f.Report.Skipped
	done.Notes = append(done.Notes, f.Report.Notes...)
	if len(f.Report.Rejected) > 0 {
		done.RejectedFile = filepath.Join(r.Rejected, importer.SessionID(name)+".rejected.jsonl")
		if done.Rejected, err = keep(done.RejectedFile, name, f.Report.Rejected); err != nil {
			return done, err
		}
	}
	done.Sessions, err = r.conversations(ctx, f, int64(len(data)))
	return done, err
}

func (r *importRun) conversations(ctx context.Context, f *importer.File, fileBytes int64) ([]uploaded, error) {
	list, total, sent := []uploaded{}, 1, 0
	for _, conv := range f.Conversations {
		total += size(conv.Messages)
	}
	for _, conv := range f.Conversations {
		if len(conv.Messages) == 0 {
			continue
		}
		settings, err := r.settings(conv.Format)
		if err != nil {
			return list, err
		}
		up := upload{client: r.client, settings: settings, conv: conv, stored: func(messages, bytes int) {
			sent += bytes
			r.progress.set(r.before+fileBytes*int64(sent)/int64(total), messages)
		}}
		done, err := up.run(ctx)
		if done.Session != "" {
			list = append(list, done)
		}
		if err != nil {
			return list, err
		}
	}
	return list, nil
}

// settings is the body of the PUT that makes a session.
func (r *importRun) settings(format session.Format) (json.RawMessage, error) {
	return json.Marshal(struct {
		Format       session.Format  `json:"format"`
		Model        string          `json:"model,omitempty"`
		WindowTokens int             `json:"window_tokens,omitempty"`
		Policy       json.RawMessage `json:"policy,omitempty"`
	}{format, r.Model, r.WindowTokens, r.policy})
}

// interruptedError says how to go on with an import that was stopped.
type interruptedError struct {
	stopped string
	args    []string
}

func (e *interruptedError) Error() string {
	return fmt.Sprintf("interrupted in %s; nothing is lost, the same command goes on from there:\n  %s", printable(e.stopped), shellLine(e.args))
}

func (e *interruptedError) Unwrap() error { return context.Canceled }

// shellLine quotes arguments so that a shell reads them back.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`*?[]{}()<>|&;~#!") {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
