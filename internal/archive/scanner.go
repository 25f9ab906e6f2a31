package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Scanner reads lines, holds one at a time, and skips the text of lines that are too long.
type Scanner struct {
	in       *bufio.Reader
	maxBytes int
}

// NewScanner returns a Scanner of lines of at most maxBytes.
func NewScanner(in io.Reader, maxBytes int) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(in, HeadBytes), maxBytes: maxBytes}
}

// Line is one line of a file, without its line feed.
type Line struct {
	Text  []byte // owned by the caller; nil if the line is too long
	Bytes int64  // with the line feed, if there is one
}

// Next reads a line. It returns io.EOF after the last one, which may lack a line feed.
func (s *Scanner) Next() (line Line, err error) {
	tooLong := false
	for {
		part, err := s.in.ReadSlice('\n')
		line.Bytes += int64(len(part))
		if tooLong = tooLong || line.Bytes > int64(s.maxBytes); tooLong {
			line.Text = nil
		} else {
			line.Text = append(line.Text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && line.Bytes > 0:
		case err != nil:
			return Line{}, err
		}
		line.Text = bytes.TrimSuffix(line.Text, []byte("\n"))
		return line, nil
	}
}

// Rest returns everything that Next has not read yet.
func (s *Scanner) Rest() io.Reader { return s.in }

// Peek returns the next n bytes without reading them, at most HeadBytes; fewer only at the end.
func (s *Scanner) Peek(n int) ([]byte, error) {
	head, err := s.in.Peek(n)
	if err == io.EOF {
		err = nil
	}
	return head, err
}
