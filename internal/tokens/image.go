package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	_ "image/gif" // the formats that Measure reads
	_ "image/jpeg"
	_ "image/png"
	"io"
)

// Unknown is the cost of a picture or file of unknown size: about that of a large picture, or of a page.
const Unknown = 1500

// Pixels is the size of a picture; zero is unknown.
type Pixels struct{ Width, Height int }

// OpenAI's cost of a picture: a base, and as much again for each tile of 512 pixels of the picture scaled to fit.
const (
	tileBase   = 85
	tileTokens = 170
	tileSide   = 512
	tiledLong  = 2048
	tiledShort = 768
)

// TiledImage returns the cost in tokens of a picture whose tiles count, as with OpenAI. detail is "low", "high", "auto"
// or "".
func TiledImage(detail string, size Pixels) int {
	if detail == "low" {
		return tileBase
	}
	if size.Width <= 0 || size.Height <= 0 {
		return Unknown
	}
	size = size.scaled(max(size.Width, size.Height), tiledLong)
	size = size.scaled(min(size.Width, size.Height), tiledShort)
	tiles := ((size.Width + tileSide - 1) / tileSide) * ((size.Height + tileSide - 1) / tileSide)
	return tileBase + tileTokens*tiles
}

// Anthropic's cost of a picture: by its area, after a large one was scaled down.
const (
	areaPixels = 750
	areaLong   = 1568
	areaLimit  = 1600
)

// AreaImage returns the cost in tokens of a picture whose area counts, as with Anthropic.
func AreaImage(size Pixels) int {
	if size.Width <= 0 || size.Height <= 0 {
		return Unknown
	}
	size = size.scaled(max(size.Width, size.Height), areaLong)
	return min(areaLimit, (size.Width*size.Height+areaPixels-1)/areaPixels)
}

// scaled returns the size after scaling down until side, one of its sides, has up to limit pixels.
func (p Pixels) scaled(side, limit int) Pixels {
	if side <= limit {
		return p
	}
	return Pixels{Width: max(1, p.Width*limit/side), Height: max(1, p.Height*limit/side)}
}

// headBytes is how much of a picture is read to find its size: JPEG may have a preview of 64 KiB before it. Others tell
// it in their first bytes.
var headBytes = []int{1 << 10, 80 << 10}

// Measure returns the size of a picture in base64, read from its head; unknown for other formats than PNG, JPEG, GIF
// and WebP.
func Measure(encoded []byte) Pixels {
	for _, size := range headBytes {
		head := headOf(encoded, size)
		if webp := measureWebP(head); webp != (Pixels{}) {
			return webp
		}
		config, _, err := image.DecodeConfig(bytes.NewReader(head))
		switch {
		case err == nil && max(config.Width, config.Height) <= maxSide:
			return Pixels{Width: config.Width, Height: config.Height}
		case err == nil, len(head) < size:
			return Pixels{}
		}
	}
	return Pixels{}
}

// headOf decodes the first bytes of base64, at most size of them.
func headOf(encoded []byte, size int) []byte {
	encoded = encoded[:min(len(encoded), base64.StdEncoding.EncodedLen(size))]
	head, _ := io.ReadAll(io.LimitReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(encoded)), int64(size)))
	return head
}

// measureWebP reads the size from the first chunk of a WebP, of each of its three kinds
// (https://developers.google.com/speed/webp/docs/riff_container).
func measureWebP(head []byte) Pixels {
	if len(head) < 30 || string(head[:4]) != "RIFF" || string(head[8:12]) != "WEBP" {
		return Pixels{}
	}
	little := binary.LittleEndian
	switch string(head[12:16]) {
	case "VP8 ":
		return Pixels{Width: int(little.Uint16(head[26:]) & 0x3fff), Height: int(little.Uint16(head[28:]) & 0x3fff)}
	case "VP8L":
		bits := little.Uint32(head[21:])
		return Pixels{Width: int(bits&0x3fff) + 1, Height: int(bits>>14&0x3fff) + 1}
	case "VP8X":
		side := func(at int) int { return int(head[at]) | int(head[at+1])<<8 | int(head[at+2])<<16 }
		return Pixels{Width: side(24) + 1, Height: side(27) + 1}
	}
	return Pixels{}
}

// maxSide is more than any provider accepts; a head that declares more is damaged, and its area could overflow.
const maxSide = 1 << 16
