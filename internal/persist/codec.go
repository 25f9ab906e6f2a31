package persist

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// The codecs of result_chunks.codec.
const (
	codecRaw  int16 = 0
	codecZstd int16 = 1
)

// A frame needs no checksum of its own: every chunk has a digest.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(64<<20))
)

// compress returns the zstd frame of a text. The only chunk of a body stays as it is if that is smaller; the chunks of
// others are all frames, which an older schema strings together.
func compress(text []byte, only bool) (codec int16, stored []byte) {
	packed := encoder.EncodeAll(text, nil)
	if only && len(packed) >= len(text) || len(text) == 0 {
		return codecRaw, append([]byte{}, text...)
	}
	return codecZstd, packed
}

func decompress(codec int16, stored []byte, size int) ([]byte, error) {
	switch codec {
	case codecRaw:
		return stored, nil
	case codecZstd:
		return decoder.DecodeAll(stored, make([]byte, 0, size))
	}
	return nil, fmt.Errorf("chunk with codec %d: this version knows 0 and 1", codec)
}
