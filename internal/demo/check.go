package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
	"github.com/varve-dev/varve/internal/wire"
)

// listedResults is how many of the results that are read back are listed, each of another session.
const listedResults = 3

// readBack reads every persisted result from the API and compares it with the API's header and with the file.
func (d *Demo) readBack(ctx context.Context) error {
	var total, size int64
	listed := 0
	fmt.Fprintf(d.Out, "\nTrimmed results, read back:\n")
	table := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	for i := range d.sessions {
		s := &d.sessions[i]
		for j, r := range s.kept {
			if err := d.compareResult(ctx, s, r); err != nil {
				return fmt.Errorf("session %s, result %s: %w", s.conv.ID, r.Ref, err)
			}
			if j == len(s.kept)/2 && listed < listedResults {
				listed++
				fmt.Fprintf(table, "  %s\t%s\t%s\t%d lines\t%s bytes\tsha256 %.12s…\n", s.conv.ID, r.Ref,
					terminal.Printable(r.Tool), r.Lines, terminal.Thousands(r.Bytes), r.SHA256)
			}
			total++
			size += r.Bytes
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.Out, "  %s: each has the SHA-256 that its header names and that of the original in the file (%s bytes)\n",
		terminal.Count(int(total), "result"), terminal.Thousands(size))
	return nil
}

func (d *Demo) compareResult(ctx context.Context, s *shownSession, r protocol.Result) error {
	body, named, err := d.API.RawResult(ctx, s.conv.ID, r.Ref)
	if err != nil {
		return err
	}
	defer body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		return err
	}
	original, err := originalResult(s.conv.Format, s.conv.Messages[r.Seq-1].Body, r.Part)
	if err != nil {
		return err
	}
	file := sha256.Sum256(original)
	read := hex.EncodeToString(sum.Sum(nil))
	if read != named || read != r.SHA256 || read != hex.EncodeToString(file[:]) {
		return fmt.Errorf("what was read has the SHA-256 %s, its header says %s, the list %s, and message %d of %s has %x",
			read, named, r.SHA256, r.Seq, filepath.Base(s.file), file)
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
	messages := 0
	size := int64(0)
	var problems []error
	for i := range d.sessions {
		s := &d.sessions[i]
		if err := d.compareLog(ctx, s); err != nil {
			problems = append(problems, fmt.Errorf("session %s: %w", s.conv.ID, err))
		}
		messages += len(s.conv.Messages)
		for _, m := range s.conv.Messages {
			size += int64(len(m.Body))
		}
	}
	if len(problems) == 0 {
		fmt.Fprintf(d.Out, "\nThe logs: all %s messages (%s bytes) came back byte for byte as they are in the files.\n",
			terminal.Thousands(int64(messages)), terminal.Thousands(size))
	}
	return errors.Join(problems...)
}

func (d *Demo) compareLog(ctx context.Context, s *shownSession) error {
	if got, want := s.state.LastSeq, int64(len(s.conv.Messages)); got != want {
		return fmt.Errorf("it has %d messages, the file %d", got, want)
	}
	for next := int64(1); next <= s.state.LastSeq; {
		page, err := d.API.Messages(ctx, s.conv.ID, next, 200)
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
