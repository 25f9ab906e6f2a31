package shelf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A view is the SHA-256 of a zstd frame, and the frame. In that are the version of this format, one byte, and fields,
// each behind its length, a uvarint.
const viewVersion = 1

// maxViewBytes bounds what a view has when it is decompressed.
const maxViewBytes = 64 << 20

var viewEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
})

var viewDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxViewBytes))
})

// PackView returns a view with these fields.
func PackView(fields ...[]byte) ([]byte, error) {
	plain := []byte{viewVersion}
	for _, field := range fields {
		plain = binary.AppendUvarint(plain, uint64(len(field)))
		plain = append(plain, field...)
	}
	encoder, err := viewEncoder()
	if err != nil {
		return nil, err
	}
	packed := encoder.EncodeAll(plain, make([]byte, sha256.Size))
	sum := sha256.Sum256(packed[sha256.Size:])
	copy(packed, sum[:])
	return packed, nil
}

// UnpackView reads a view into fields, whose memory it reuses. ErrFormat if it is not one, or has other fields.
func UnpackView(packed []byte, fields ...*[]byte) error {
	if len(packed) < sha256.Size {
		return fmt.Errorf("%w: a view is cut off", ErrFormat)
	}
	if sum := sha256.Sum256(packed[sha256.Size:]); !bytes.Equal(sum[:], packed[:sha256.Size]) {
		return fmt.Errorf("%w: a view has another digest than when it was written", ErrFormat)
	}
	decoder, err := viewDecoder()
	if err != nil {
		return err
	}
	plain, err := decoder.DecodeAll(packed[sha256.Size:], nil)
	if err != nil || len(plain) == 0 || plain[0] != viewVersion {
		return fmt.Errorf("%w: a view of another version", ErrFormat)
	}
	rest := plain[1:]
	for _, field := range fields {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return fmt.Errorf("%w: a field of a view is cut off", ErrFormat)
		}
		*field = append((*field)[:0], rest[n:n+int(size)]...)
		rest = rest[n+int(size):]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: a view has more fields than this program knows", ErrFormat)
	}
	return nil
}
