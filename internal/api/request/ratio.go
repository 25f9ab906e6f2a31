package request

import (
	"io"
)

// A packed body may have this many bytes for each that was sent. Conversations pack 3 to 50 times; what packs more is a
// few texts over and over, which cost far more to count, to parse or to store than to send.
const maxRatio = 200

// freeBytes is how much of a body no ratio is asked of.
const freeBytes = 1 << 20

// weighed is a packed body that is read unpacked, until it turns out to be packed too much.
type weighed struct {
	packed   *counted
	unpacked io.Reader
	size     int64
}

// counted counts what is read of a body.
type counted struct {
	source io.Reader
	size   int64
}

// Read reads the next bytes as they were sent.
func (c *counted) Read(p []byte) (n int, err error) {
	n, err = c.source.Read(p)
	c.size += int64(n)
	return n, err
}

// Read reads the next bytes, unpacked.
func (w *weighed) Read(p []byte) (n int, err error) {
	n, err = w.unpacked.Read(p)
	if w.size += int64(n); w.size > freeBytes && w.size > maxRatio*w.packed.size {
		return 0, Fail("body_too_large", "the body is packed more than %d times: send it with less or no compression, "+
			"or in parts", maxRatio)
	}
	return n, err
}
