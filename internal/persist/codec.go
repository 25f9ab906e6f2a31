package persist

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// The codecs of result_bodies.codec.
const (
	codecRaw  int16 = 0
	codecZstd int16 = 1
)

var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))
)

// compress returns the smaller of a body and its compressed form.
func compress(body []byte) (codec int16, stored []byte) {
	packed := encoder.EncodeAll(body, nil)
	if len(packed) < len(body) {
		return codecZstd, packed
	}
	if body == nil {
		body = []byte{}
	}
	return codecRaw, body
}

func decompress(codec int16, stored []byte, size int64) ([]byte, error) {
	switch codec {
	case codecRaw:
		return stored, nil
	case codecZstd:
		return decoder.DecodeAll(stored, make([]byte, 0, size))
	}
	return nil, fmt.Errorf("result body with codec %d: this version knows 0 and 1", codec)
}
