package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Scanner reads lines without ever holding more than one, and passes over those that are too long to be any.
type Scanner struct {
	in   *bufio.Reader
	most int
}

// NewScanner reads lines of at most so many bytes.
func NewScanner(in io.Reader, most int) *Scanner {
	return &Scanner{in: bufio.NewReaderSize(in, HeadBytes), most: most}
}

// Line is one line of a file, without its line feed.
type Line struct {
	Text  []byte // the caller's own; nil if the line is too long
	Bytes int64  // with the line feed, if there is one
}

// Next reads a line. io.EOF says that there is none left; a last line without a line feed is one, too.
func (s *Scanner) Next() (line Line, err error) {
	tooLong := false
	for {
		part, err := s.in.ReadSlice('\n')
		line.Bytes += int64(len(part))
		if tooLong = tooLong || line.Bytes > int64(s.most); tooLong {
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

// Rest is everything that Next has not read yet.
func (s *Scanner) Rest() io.Reader { return s.in }

// Peek is the beginning of what Next has not read yet, up to n bytes; fewer only where it ends, and at most HeadBytes.
func (s *Scanner) Peek(n int) ([]byte, error) {
	head, err := s.in.Peek(n)
	if err == io.EOF {
		err = nil
	}
	return head, err
}
