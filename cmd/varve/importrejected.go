package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/packed"
)

// rejection is a line of a file that could not be imported.
type rejection struct {
	Line   int64  `json:"line"` // in a document, the position of the message
	Reason string `json:"reason"`
}

// keptLine is a line of the side file: what could not be imported, as text where it is text, else in base64.
type keptLine struct {
	File string `json:"file"`
	rejection
	Bytes  int    `json:"bytes,omitempty"`
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"base64,omitempty"`
}

// keepRejected writes rejected lines to a side file. The same import writes the same file again. It only names the
// lines of a document, and of a file that cannot be read twice.
func keepRejected(path, source string, in *os.File, list []rejection) error {
	texts, err := linesOf(in, list)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, bad := range list {
		kept := keptLine{File: source, rejection: bad}
		text, known := texts[bad.Line]
		kept.Bytes = len(text)
		if known && utf8.Valid(text) {
			kept.Text = string(text)
		} else if known {
			kept.Base64 = text
		}
		if err := encoder.Encode(kept); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// linesOf returns the text of the lines that are listed, none of a document.
func linesOf(in *os.File, list []rejection) (map[int64][]byte, error) {
	texts := map[int64][]byte{}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return texts, nil // a pipe
	}
	for _, bad := range list {
		texts[bad.Line] = nil
	}
	content, err := packed.Open(in)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	lines := bufio.NewReader(content)
	for n := int64(1); ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		text := bytes.TrimRight(line, "\r\n")
		if n == 1 && isDocument(text, err == nil) {
			return nil, nil
		}
		if _, wanted := texts[n]; wanted {
			texts[n] = text
		}
		if err != nil {
			return texts, nil
		}
	}
}

// isDocument reports whether a file is one JSON document rather than JSON lines, by its first line: it begins a value
// that it does not end, or it is an array or the only line.
func isDocument(first []byte, more bool) bool {
	first = bytes.TrimSpace(bytes.TrimPrefix(first, []byte("\xef\xbb\xbf")))
	if len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return false
	}
	return first[0] == '[' || !more || !json.Valid(first)
}
