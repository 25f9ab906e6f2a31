package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/importer"
)

// rejection is a piece of a file that could not be imported, as it is reported; the side file has the piece itself, too.
type rejection struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Bytes  int    `json:"bytes"`
}

// keep writes what could not be read to a side file, one JSON object a line: as text where it is text, else in base64.
// The same import writes the same file again.
func keep(path, source string, list []importer.Rejected) ([]rejection, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	report := []rejection{}
	for _, bad := range list {
		kept := struct {
			File string `json:"file"`
			rejection
			Text   string `json:"text,omitempty"`
			Base64 string `json:"base64,omitempty"`
		}{File: source, rejection: rejection{bad.Line, bad.Reason, len(bad.Bytes)}}
		if utf8.Valid(bad.Bytes) {
			kept.Text = string(bad.Bytes)
		} else {
			kept.Base64 = base64.StdEncoding.EncodeToString(bad.Bytes)
		}
		if err := encoder.Encode(kept); err != nil {
			return nil, err
		}
		report = append(report, kept.rejection)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return report, os.WriteFile(path, out.Bytes(), 0o600)
}

// print writes the table to out, and what needs a person's eye to notes.
func (r *importRun) print(out, notes io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(map[string]any{"files": r.files})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tSESSION\tMESSAGES\tNEW\tTOKENS\tSKIPPED LINES\tBAD LINES")
	for _, f := range r.files {
		f.rows(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, f := range r.files {
		f.remarks(notes)
	}
	return nil
}

// incomplete is an error unless every file gave a conversation and every line could be read. Files with an error of their
// own are not its matter.
func (r *importRun) incomplete() error {
	var problems []error
	for _, f := range r.files {
		if f.Import != nil {
			problems = append(problems, f.Import.incomplete(f.File))
			continue
		}
		if len(f.Sessions) == 0 && f.Error == "" {
			problems = append(problems, fmt.Errorf("%s: nothing in it could be imported", printable(f.File)))
		}
		if n := len(f.Rejected); n > 0 {
			problems = append(problems, fmt.Errorf("%s: %s could not be read (kept in %s)", printable(f.File), count(n, "line"), printable(f.RejectedFile)))
		}
	}
	return errors.Join(problems...)
}

func (f *imported) rows(table io.Writer) {
	skipped := 0
	for _, n := range f.Skipped {
		skipped += n
	}
	name := printable(filepath.Base(f.File))
	if i := f.Import; i != nil {
		fmt.Fprintf(table, "%s\t%d new\t%d\t%d\t-\t0\t%d\n", name, i.Sessions, i.Messages+i.Duplicates, i.Messages, i.Rejected)
		return
	}
	if len(f.Sessions) == 0 {
		fmt.Fprintf(table, "%s\t-\t0\t0\t0\t%d\t%d\n", name, skipped, len(f.Rejected))
		return
	}
	for i, s := range f.Sessions {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t", name, printable(s.Session), s.Messages, s.Appended, s.TotalTokens)
		if i == 0 {
			fmt.Fprintf(table, "%d\t%d\n", skipped, len(f.Rejected))
		} else {
			fmt.Fprint(table, "\t\n")
		}
	}
}

// remarks tells what was skipped, odd and bad.
func (f *imported) remarks(out io.Writer) {
	name := printable(f.File)
	if len(f.Skipped) > 0 {
		kinds := make([]string, 0, len(f.Skipped))
		for _, kind := range slices.Sorted(maps.Keys(f.Skipped)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", f.Skipped[kind], kind))
		}
		fmt.Fprintf(out, "%s: no conversation: %s\n", name, strings.Join(kinds, ", "))
	}
	for _, n := range f.Notes {
		fmt.Fprintf(out, "%s: line %d: %s\n", name, n.Line, n.Text)
	}
	for _, bad := range f.Rejected {
		if f.Import != nil {
			fmt.Fprintf(out, "%s: line %d: %s\n", name, bad.Line, bad.Reason)
			continue
		}
		fmt.Fprintf(out, "%s: line %d: %s (%d bytes, kept in %s)\n", name, bad.Line, bad.Reason, bad.Bytes, printable(f.RejectedFile))
	}
}

// incomplete is an error if not every line of an export could be imported; nil also for one that was interrupted, which
// has an error of its own.
func (i *archiveImport) incomplete(file string) error {
	if i.Rejected == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s could not be imported (GET /v1/imports/%s/lines?outcome=rejected lists them)", printable(file), count(int(i.Rejected), "line"), i.ID)
}
