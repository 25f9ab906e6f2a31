package tokens_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/tokens"
)

func TestAPictureCostsByItsTiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		detail string
		size   tokens.Pixels
		want   int
	}{
		{"low", tokens.Pixels{Width: 4000, Height: 3000}, 85},
		{"high", tokens.Pixels{Width: 1024, Height: 1024}, 765},  // scaled to 768 by 768: 4 tiles
		{"high", tokens.Pixels{Width: 2048, Height: 4096}, 1105}, // scaled to 768 by 1536: 6 tiles
		{"auto", tokens.Pixels{Width: 512, Height: 512}, 255},
		{"", tokens.Pixels{Width: 1, Height: 1}, 255},
		{"", tokens.Pixels{Width: 60_000, Height: 1}, 765},
		{"high", tokens.Pixels{}, tokens.Unknown},
	} {
		if got := tokens.TiledImage(c.detail, c.size); got != c.want {
			t.Errorf("%q of %+v costs %d, want %d", c.detail, c.size, got, c.want)
		}
	}
}

func TestAPictureCostsByItsArea(t *testing.T) {
	t.Parallel()
	for size, want := range map[tokens.Pixels]int{
		{Width: 200, Height: 200}:   54,
		{Width: 1000, Height: 1000}: 1334,
		{Width: 4000, Height: 3000}: 1600,
		{Width: 4000, Height: 400}:  327, // scaled to 1568 by 156
		{Width: 1, Height: 1}:       1,
		{}:                          tokens.Unknown,
	} {
		if got := tokens.AreaImage(size); got != want {
			t.Errorf("%+v costs %d, want %d", size, got, want)
		}
	}
}

func TestTheSizeOfAPictureIsInItsHead(t *testing.T) {
	t.Parallel()
	picture, want := image.NewGray(image.Rect(0, 0, 321, 123)), tokens.Pixels{Width: 321, Height: 123}
	for name, encode := range map[string]func(io.Writer) error{
		"PNG":  func(w io.Writer) error { return png.Encode(w, picture) },
		"JPEG": func(w io.Writer) error { return jpeg.Encode(w, picture, nil) },
		"GIF":  func(w io.Writer) error { return gif.Encode(w, picture, nil) },
	} {
		var data bytes.Buffer
		if err := encode(&data); err != nil {
			t.Fatal(err)
		}
		text := []byte(base64.StdEncoding.EncodeToString(data.Bytes()))
		for _, encoded := range [][]byte{text, slices.Concat(text, []byte("!!")), slices.Concat(text, bytes.Repeat([]byte("A"), 1<<20))} {
			if got := tokens.Measure(encoded); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
	}
	for name, chunk := range map[string]string{ // of a WebP
		"VP8 ": "\x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x41\x41\x7b\x80", "VP8L": "\x00\x00\x00\x00\x2f\x40\x81\x1e\x10\x00\x00\x00\x00\x00",
		"VP8X": "\x0a\x00\x00\x00\x10\x00\x00\x00\x40\x01\x00\x7a\x00\x00",
	} {
		head := "RIFF\x00\x00\x00\x00WEBP" + name + chunk
		if got := tokens.Measure([]byte(base64.StdEncoding.EncodeToString([]byte(head)))); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, encoded := range []string{"", "!", "AAAA", "iVBORw0KGgo="} {
		if got := tokens.Measure([]byte(encoded)); got != (tokens.Pixels{}) {
			t.Errorf("%q has the size %+v", encoded, got)
		}
	}
}
