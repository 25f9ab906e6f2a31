package readback

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
)

// BytesWanted says which bytes to read. Zero fields mean the defaults.
type BytesWanted struct {
	Offset   int64 // from 0
	Bytes    int64 // how many; 0 for as many as max_bytes allows
	MaxBytes int
}

// Want says what to bring along when the result is opened.
func (w *BytesWanted) Want() persist.Want {
	return persist.Want{FromByte: w.Offset, ToByte: w.Offset + min(max(w.Bytes, DefaultBytes), MaxBytes)}
}

// Bytes returns a range of bytes. It begins and ends with whole characters, so it may begin a little earlier than
// asked for; what is not UTF-8 is returned as base64. An offset behind the end is said in Note.
func Bytes(ctx context.Context, of *persist.Content, want BytesWanted) (*protocol.ByteRange, error) {
	if err := (bound{"offset", want.Offset, 0, math.MaxInt64}).check(); err != nil {
		return nil, err
	}
	if err := (bound{"bytes", want.Bytes, 0, math.MaxInt64}).check(); err != nil {
		return nil, err
	}
	if err := checkBytes(&want.MaxBytes); err != nil {
		return nil, err
	}
	a := &protocol.ByteRange{Offset: want.Offset, Encoding: "utf-8", TotalLines: of.Lines(), TotalBytes: of.Size()}
	if want.Offset >= max(of.Size(), 1) {
		a.Note = fmt.Sprintf("offset %d is beyond the end: there are %d bytes", want.Offset, of.Size())
		return a, nil
	}
	n := want.MaxBytes - maxChar // it may begin a little earlier
	if want.Bytes > 0 && want.Bytes < int64(n) {
		n = int(want.Bytes)
	}
	before := min(want.Offset, maxChar-1)
	text, err := newReader(of).read(ctx, want.Offset-before, int(before)+n+maxChar)
	if err != nil {
		return nil, err
	}
	setBytes(a, text, int(before), n, want.MaxBytes)
	a.Truncated = a.NextOffset != nil && (want.Bytes == 0 || want.Bytes > int64(n))
	return a, nil
}

// setBytes sets the range that begins in text at start and has n bytes.
func setBytes(a *protocol.ByteRange, text []byte, start, n, maxBytes int) {
	first := start
	for first > 0 && continues(text[first]) {
		first--
	}
	_, size := utf8.DecodeRune(text[first:])
	piece := wholeChars(text[first:], max(start-first+n, size))
	if utf8.Valid(piece) && len(piece) <= maxBytes {
		a.Offset -= int64(start - first)
		a.Content = string(piece)
	} else {
		piece = text[start:min(start+min(n, maxBytes/4*3), len(text))]
		a.Content, a.Encoding = base64.StdEncoding.EncodeToString(piece), "base64"
	}
	a.Bytes = len(piece)
	if next := a.Offset + int64(a.Bytes); next < a.TotalBytes {
		a.NextOffset = &next
	}
}
