package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

// imported is what became of one file.
type imported struct {
	File         string                `json:"file"`
	Source       string                `json:"source"`
	Sessions     []importedSession     `json:"sessions"` // not of an export
	Lines        int                   `json:"lines"`
	Imported     int                   `json:"imported"`
	Skipped      map[string]int        `json:"skipped"`
	Rejected     []rejection           `json:"rejected"`
	RejectedFile string                `json:"rejected_file,omitempty"`
	Notes        []protocol.ImportNote `json:"notes"`
	Import       *protocol.Import      `json:"import,omitempty"` // as the server reports it
	Error        string                `json:"error,omitempty"`
}

// importedSession is a session that a file's messages are in.
type importedSession struct {
	Session     string `json:"session"`
	Messages    int    `json:"messages"`     // of the file
	Appended    int    `json:"appended"`     // by this run
	LastSeq     int64  `json:"last_seq"`     // of the session
	TotalTokens int64  `json:"total_tokens"` // of the session
}

// collect reads what became of a file's lines from the server.
func (r *importRun) collect(ctx context.Context, done *imported, in *os.File, i *protocol.Import) error {
	done.Import = i
	if i.From != nil {
		done.Source = *i.From
	}
	if err := r.readLines(ctx, done, i); err != nil {
		return err
	}
	if len(done.Rejected) > 0 {
		done.RejectedFile = filepath.Join(r.Rejected, importer.SessionID(done.File)+".rejected.jsonl")
		if err := keepRejected(done.RejectedFile, done.File, in, done.Rejected); err != nil {
			return err
		}
	}
	if done.IsArchive() {
		done.Lines = int(i.Progress.Done)
		done.Imported = done.Lines - len(done.Rejected)
		return nil
	}
	var report protocol.ImportReport
	if err := json.Unmarshal(i.Report, &report); err != nil {
		return fmt.Errorf("import %s: its report does not have the expected form: %w", i.ID, err)
	}
	done.Lines, done.Skipped = report.Lines, report.Skipped
	done.Notes = append(done.Notes, report.Notes...)
	done.Imported = done.Lines - done.SkippedLines() - len(done.Rejected)
	return nil
}

// IsArchive reports whether the file was an export of Varve.
func (f *imported) IsArchive() bool { return f.Source == archive.Source }

// SkippedLines counts the lines that are not conversation.
func (f *imported) SkippedLines() (n int) {
	for _, kind := range f.Skipped {
		n += kind
	}
	return n
}

// readLines lists the rejected lines and, unless the file is an export, the sessions that its messages are in, in the
// order of the file.
func (r *importRun) readLines(ctx context.Context, done *imported, i *protocol.Import) error {
	outcome := ""
	if done.IsArchive() {
		if i.Rejected == 0 {
			return nil
		}
		outcome = string(protocol.LineRejected)
	}
	at := map[string]int{}
	err := r.api.EachImportLine(ctx, i.ID.String(), outcome, func(l protocol.ImportedLine) {
		switch {
		case l.Outcome == protocol.LineRejected:
			done.Rejected = append(done.Rejected, rejection{Line: l.Line, Reason: l.Detail})
			return
		case l.Session == nil: // it is erased
			return
		}
		n, known := at[*l.Session]
		if !known {
			n = len(done.Sessions)
			at[*l.Session] = n
			done.Sessions = append(done.Sessions, importedSession{Session: *l.Session})
		}
		s := &done.Sessions[n]
		if l.Outcome == protocol.LineStored {
			s.Appended++
		}
		if l.Outcome == protocol.LineStored || l.Outcome == protocol.LineDuplicate {
			s.Messages++
		}
	})
	if err != nil {
		return err
	}
	for n := range done.Sessions {
		s := &done.Sessions[n]
		now, err := client.ReadSession.Call(ctx, r.api, s.Session)
		if err != nil {
			return err
		}
		s.LastSeq = now.Value.LastSeq
		s.TotalTokens = now.Value.TotalTokens
	}
	return nil
}

// print writes the table to out, and what needs a person's attention to notes. A file that was refused has its error
// only.
func (r *importRun) print(out, notes io.Writer, asJSON bool) error {
	if asJSON {
		return command.WriteJSON(out, map[string]any{"files": r.files})
	}
	read := slices.DeleteFunc(slices.Clone(r.files), func(f imported) bool { return f.Error != "" && f.Import == nil })
	if len(read) == 0 {
		return nil
	}
	if err := writeView(out, "import", read); err != nil {
		return err
	}
	return views.ExecuteTemplate(notes, "remarks", r.files)
}

// incomplete returns an error unless every file gave a conversation and every line could be imported. Files that have
// an error already are not counted again.
func (r *importRun) incomplete() error {
	var problems []error
	for i := range r.files {
		f := &r.files[i]
		if len(f.Sessions) == 0 && f.Error == "" && !f.IsArchive() {
			problems = append(problems, fmt.Errorf("%s: nothing in it could be imported", terminal.Printable(f.File)))
		}
		if n := len(f.Rejected); n > 0 {
			problems = append(problems, fmt.Errorf(
				"%s: %s could not be imported (kept in %s; GET /v1/imports/%s/lines?outcome=rejected lists them)",
				terminal.Printable(f.File), terminal.Count(n, "line"), terminal.Printable(f.RejectedFile), f.Import.ID))
		}
	}
	return errors.Join(problems...)
}
