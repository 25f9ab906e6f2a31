package persist

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bodies returns bodies whose chunks are hard to get right.
func bodies() map[string][]byte {
	random := make([]byte, 3*ChunkBytes+5)
	for i := range random {
		random[i] = byte(rand.IntN(256))
	}
	lines := &strings.Builder{}
	for n := range 20_000 {
		fmt.Fprintf(lines, "line %d %s\n", n, strings.Repeat("x", n%97))
	}
	long := strings.Repeat("é", ChunkBytes)
	return map[string][]byte{
		"empty": {}, "one byte": []byte("x"), "a line feed": []byte("\n"), "random": random,
		"lines": []byte(lines.String()), "lines without an end": []byte(lines.String() + "end"),
		"a chunk": bytes.Repeat([]byte("y"), ChunkBytes), "a chunk and a line feed": []byte(strings.Repeat("y", ChunkBytes) + "\n"),
		"a line of more than a chunk": []byte("a\n" + long + "\nb\n"), "line feeds": bytes.Repeat([]byte("\n"), 2*ChunkBytes+1),
	}
}

func lineCount(body []byte) int64 {
	n := int64(0)
	for range bytes.Lines(body) {
		n++
	}
	return n
}

func TestTheChunksOfABodyAreItAndSayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		made := newBodyOf(body)
		if made.Bytes != int64(len(body)) || made.Lines != lineCount(body) || made.SHA256 != sha256.Sum256(body) {
			t.Errorf("%s: %+v", name, made.Body)
		}
		joined := []byte{}
		for i, c := range made.chunks {
			text, err := decompress(c.codec, c.stored, c.Size)
			if err != nil || sha256.Sum256(text) != c.Digest || c.n != i || c.Size > ChunkBytes || c.At != int64(len(joined)) {
				t.Fatalf("%s: chunk %d is %+v, %v", name, i, c.Chunk, err)
			}
			inLine := len(joined) > 0 && joined[len(joined)-1] != '\n'
			if c.Line != int64(bytes.Count(joined, []byte("\n"))+1) || c.InLine != inLine {
				t.Errorf("%s: chunk %d begins in line %d, %v", name, i, c.Line, c.InLine)
			}
			if len(made.chunks) > 1 && c.codec != codecZstd {
				t.Errorf("%s: chunk %d of several is no frame", name, i)
			}
			joined = append(joined, text...)
		}
		if !bytes.Equal(joined, body) {
			t.Errorf("%s: the chunks are another body", name)
		}
	}
}

func TestALineThatFitsLiesInOneChunk(t *testing.T) {
	t.Parallel()
	for i, c := range newBodyOf(bodies()["lines"]).chunks {
		if c.InLine {
			t.Errorf("chunk %d begins inside a line", i)
		}
	}
	text := bodies()["a line of more than a chunk"]
	for i, c := range newBodyOf(text).chunks {
		if at := text[c.At]; at&0xc0 == 0x80 {
			t.Errorf("chunk %d begins inside a character", i)
		}
	}
}

func TestACutterMakesTheSameChunksHoweverTheBodyArrives(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		want := newBodyOf(body)
		for range 3 {
			var got []encoded
			c := newCutter()
			for rest := body; len(rest) > 0; {
				n := min(rand.IntN(ChunkBytes*3/2)+1, len(rest))
				got = append(got, c.write(rest[:n])...)
				rest = rest[n:]
				saved, err := c.save()
				if err != nil {
					t.Fatal(err)
				}
				if c, err = loadCutter(saved); err != nil {
					t.Fatal(err)
				}
				if c.offset() != int64(len(body)-len(rest)) {
					t.Fatalf("%s: offset %d", name, c.offset())
				}
			}
			last, whole := c.end()
			got = append(got, last...)
			if whole != want.Body || !cmp.Equal(want.chunks, got, cmp.AllowUnexported(encoded{}), cmp.Comparer(bytes.Equal)) {
				t.Errorf("%s: %+v in %d chunks, want %+v in %d", name, whole, len(got), want.Body, len(want.chunks))
			}
		}
	}
}

func TestAContentFindsTheChunkOfALineAndOfAByte(t *testing.T) {
	t.Parallel()
	for name, body := range bodies() {
		c := ContentOf(body)
		if c.Size() != int64(len(body)) || c.Lines() != lineCount(body) || c.SHA256() != sha256.Sum256(body) {
			t.Errorf("%s: %d bytes, %d lines", name, c.Size(), c.Lines())
		}
		if got, err := c.All(t.Context()); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		line, at := int64(0), int64(0)
		for text := range bytes.Lines(body) {
			line++
			if line%100 == 1 || len(text) > 1000 {
				if i, j := c.AtLine(line), c.At(at); i != j {
					t.Fatalf("%s: line %d begins in chunk %d, its first byte in %d", name, line, i, j)
				}
			}
			at += int64(len(text))
		}
		for i, chunk := range c.Index() {
			if chunk.Size > 0 && (c.At(chunk.At) != i || c.At(chunk.At+int64(chunk.Size)-1) != i) {
				t.Errorf("%s: chunk %d is not where its bytes are", name, i)
			}
		}
		if last := len(c.Index()) - 1; c.At(c.Size()+9) != last || c.AtLine(c.Lines()+9) != last {
			t.Errorf("%s: beyond the end is not the last chunk", name)
		}
	}
}
