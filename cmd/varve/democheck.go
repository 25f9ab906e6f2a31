package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// shownResults is how many of the results that are read back are listed.
const shownResults = 3

// readBack reads every persisted result over the API and compares it with the API's header and with the file.
func (d *demonstration) readBack(ctx context.Context) error {
	var total, bytes int64
	fmt.Fprintf(d.out, "\nTrimmed results, read back:\n")
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	for i := range d.shown {
		s := &d.shown[i]
		for j, r := range s.kept {
			if err := d.compareResult(ctx, s, r); err != nil {
				return fmt.Errorf("session %s, result %s: %w", s.conv.ID, r.Ref, err)
			}
			if j == len(s.kept)/2 && d.lists(i) {
				fmt.Fprintf(table, "  %s\t%s\t%s\t%d lines\t%s bytes\tsha256 %.12s…\n", s.conv.ID, r.Ref, printable(r.Tool), r.Lines, thousands(r.Bytes), r.SHA256)
			}
			total++
			bytes += r.Bytes
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "  %s: each has the SHA-256 that its header names and that of the original in the file (%s bytes)\n", count(int(total), "result"), thousands(bytes))
	return nil
}

// lists reports whether a session is one of the first with results.
func (d *demonstration) lists(i int) bool {
	earlier := 0
	for _, s := range d.shown[:i] {
		if len(s.kept) > 0 {
			earlier++
		}
	}
	return earlier < shownResults
}

func (d *demonstration) compareResult(ctx context.Context, s *demoSession, r demoResult) error {
	k := call{method: http.MethodGet, path: []string{"sessions", s.conv.ID, "results", r.Ref}, query: url.Values{"raw": {"true"}}, ok: []int{http.StatusOK}}
	res, err := d.client.do(ctx, k)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, res.Body); err != nil {
		return err
	}
	original, err := originalResult(s.conv.Format, s.conv.Messages[r.Seq-1].Body, r.Part)
	if err != nil {
		return err
	}
	file := sha256.Sum256(original)
	read, named := hex.EncodeToString(sum.Sum(nil)), res.Header.Get("X-Content-Sha256")
	if read != named || read != r.SHA256 || read != hex.EncodeToString(file[:]) {
		return fmt.Errorf("what was read has the SHA-256 %s, its header says %s, the list %s, and message %d of %s has %x", read, named, r.SHA256, r.Seq, filepath.Base(s.file), file)
	}
	return nil
}

// originalResult takes a tool result out of an imported message: its text, or its JSON where it is no text.
func originalResult(format session.Format, body []byte, part int) ([]byte, error) {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	if format == session.Anthropic {
		var blocks []json.RawMessage
		if err := json.Unmarshal(m.Content, &blocks); err != nil {
			return nil, err
		}
		if part >= len(blocks) {
			return nil, fmt.Errorf("the message has %d blocks, not %d", len(blocks), part+1)
		}
		if err := json.Unmarshal(blocks[part], &m); err != nil {
			return nil, err
		}
	}
	if len(m.Content) > 0 && m.Content[0] == '"' {
		if text, ok := rawjson.Unquote(nil, m.Content); ok {
			return text, nil
		}
	}
	return m.Content, nil
}

// compareLogs reads every log and compares it with the file, byte for byte.
func (d *demonstration) compareLogs(ctx context.Context) error {
	messages, size := 0, int64(0)
	var problems []error
	for i := range d.shown {
		s := &d.shown[i]
		if err := d.compareLog(ctx, s); err != nil {
			problems = append(problems, fmt.Errorf("session %s: %w", s.conv.ID, err))
		}
		messages += len(s.conv.Messages)
		for _, m := range s.conv.Messages {
			size += int64(len(m.Body))
		}
	}
	if len(problems) == 0 {
		fmt.Fprintf(d.out, "\nThe logs: all %s messages (%s bytes) came back byte for byte as they are in the files.\n", thousands(int64(messages)), thousands(size))
	}
	return errors.Join(problems...)
}

func (d *demonstration) compareLog(ctx context.Context, s *demoSession) error {
	if got, want := s.state.LastSeq, int64(len(s.conv.Messages)); got != want {
		return fmt.Errorf("it has %d messages, the file %d", got, want)
	}
	for next := int64(1); next <= s.state.LastSeq; {
		var p logPage
		query := url.Values{"from_seq": {strconv.FormatInt(next, 10)}, "limit": {"200"}}
		if _, err := d.client.decode(ctx, call{method: http.MethodGet, path: []string{"sessions", s.conv.ID, "messages"}, query: query}, &p); err != nil {
			return err
		}
		if len(p.Data) == 0 {
			return fmt.Errorf("its log ends before message %d of %d", next, s.state.LastSeq)
		}
		for _, m := range p.Data {
			if m.Seq != next || !bytes.Equal(m.Message, s.conv.Messages[next-1].Body) {
				return fmt.Errorf("message %d is not the one in %s", m.Seq, s.file)
			}
			next++
		}
	}
	return nil
}
