package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/packed"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

// stdin is the name of standard input among the files.
const stdin = "-"

// importFile is a file to be imported.
type importFile struct {
	*os.File
	body   io.Reader // of a file that can be read only once, such as a pipe; else nil
	head   []byte    // the beginning, unpacked
	packed bool
	size   int64 // 0 if it is not known
}

// fileInfo returns what is known of a file of the command line, or why it cannot be imported.
func fileInfo(name string) (info os.FileInfo, err error) {
	if name == stdin {
		return os.Stdin.Stat()
	}
	info, err = os.Stat(name)
	var problem *fs.PathError
	switch {
	case errors.As(err, &problem):
		return nil, problem.Err
	case err == nil && info.IsDir():
		return nil, errors.New("it is a directory")
	}
	return info, err
}

// mustExist returns an error if one of the files cannot be there: nothing is imported then.
func (c *importCommand) mustExist() error {
	var problems []string
	for _, file := range c.Files {
		if _, err := fileInfo(file); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", terminal.Printable(file), err))
		}
	}
	if problems == nil {
		return nil
	}
	return command.Usage("nothing was imported: " + strings.Join(problems, "; "))
}

// openImport opens a file, and reads its beginning. The caller closes it.
func openImport(name string) (*importFile, error) {
	info, err := fileInfo(name)
	if err != nil {
		return nil, err
	}
	in := &importFile{File: os.Stdin}
	if name != stdin {
		if in.File, err = os.Open(name); err != nil {
			return nil, errors.Unwrap(err)
		}
	}
	head := make([]byte, archive.HeadBytes)
	if info.Mode().IsRegular() {
		in.size = info.Size()
		n, _ := in.ReadAt(head, 0)
		head = head[:n]
	} else {
		buffered := bufio.NewReaderSize(in.File, archive.HeadBytes)
		head, _ = buffered.Peek(archive.HeadBytes) // the upload finds the error again
		in.body = buffered
	}
	in.packed = packed.Coding(head) != ""
	in.head = unpackedHead(bytes.Clone(head))
	return in, nil
}

// unpackedHead returns as much of the beginning of a file as can be unpacked.
func unpackedHead(head []byte) []byte {
	in, err := packed.Open(bytes.NewReader(head))
	if err != nil {
		return nil
	}
	defer in.Close()
	found, _ := io.ReadAll(io.LimitReader(in, archive.HeadBytes)) // the rest is missing
	return found
}

// bytesDone returns how many bytes of the file are imported. A file of another source is sent whole before its first
// message is stored: each counts for half.
func (f *importFile) bytesDone(i *protocol.Import, sent int64) int64 {
	isArchive := i.From != nil && *i.From == archive.Source
	total := i.Progress.Total
	switch {
	case f.size == 0 || isArchive && f.packed:
		return sent
	case isArchive:
		return i.Bytes
	case total == nil || *total == 0:
		return sent / 2
	}
	return (sent + int64(float64(f.size)*float64(i.Progress.Done)/float64(*total))) / 2
}
