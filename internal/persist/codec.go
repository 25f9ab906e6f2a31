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

// Frames have a checksum of their own, for readers that only look for something: a digest takes as long as to
// decompress.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2))
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

// hasChecksum reports whether a compressed chunk has a checksum of its own, which its decoder compares: the third bit
// of the frame header's descriptor says so (RFC 8878, 3.1.1.1.1.4).
func hasChecksum(codec int16, stored []byte) bool {
	const descriptor = 4 // behind the magic number
	return codec == codecZstd && len(stored) > descriptor && stored[descriptor]&(1<<2) != 0
}
