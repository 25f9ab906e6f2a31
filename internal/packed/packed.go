// Package packed unpacks files in gzip and zstd. It is pure over streams, and owns no tables.
//
// Start at Coding, which tells such a file by its first bytes, and at Open.
package packed

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest window that zstd may ask for (RFC 9659), which bounds what a file takes to unpack.
const MaxWindow = 8 << 20

// Coding returns "gzip" or "zstd" if a file that begins like head is in it, else "". No text begins like either.
func Coding(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b\x08")):
		return "gzip"
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return "zstd"
	}
	return ""
}

// Peek returns the coding of what a reader has next, and a reader of all of it.
func Peek(in io.Reader) (coding string, all io.Reader) {
	buffered := bufio.NewReader(in)
	head, _ := buffered.Peek(4) // Read returns the error again
	return Coding(head), buffered
}

// Unpack returns what a coding packed. The caller closes it.
func Unpack(coding string, in io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "gzip":
		return gzip.NewReader(in)
	case "zstd":
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(MaxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%q is no coding", coding)
}

// Open returns a file's content, unpacked if it is packed. The caller closes it.
func Open(file io.Reader) (io.ReadCloser, error) {
	coding, all := Peek(file)
	if coding == "" {
		return io.NopCloser(all), nil
	}
	return Unpack(coding, all)
}
