package zframe_test

import (
	"fmt"
	"testing"

	"github.com/varve-dev/varve/internal/zframe"
)

var benchmarkSizes = []int{4 << 10, 64 << 10, 512 << 10}

func BenchmarkCompress(b *testing.B) {
	for _, size := range benchmarkSizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			body := conversation(1, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				zframe.Compress(body)
			}
			b.ReportMetric(float64(size)/float64(len(zframe.Compress(body))), "ratio")
		})
	}
}

func BenchmarkAppendFrame(b *testing.B) {
	for _, size := range benchmarkSizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			head, blocks, tail := make([]byte, 300), zframe.Compress(conversation(1, size)), make([]byte, 2<<10)
			frame := zframe.AppendFrame(nil, head, blocks, tail)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				frame = zframe.AppendFrame(frame[:0], head, blocks, tail)
			}
		})
	}
}

func BenchmarkDecompress(b *testing.B) {
	for _, size := range benchmarkSizes {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			body, blocks := []byte(nil), zframe.Compress(conversation(1, size))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if body, err = zframe.Decompress(body[:0], blocks, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
