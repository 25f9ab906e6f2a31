package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The types that bytes are told by, and those that they are told as.
var (
	imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	jpegNames  = []string{"image/jpeg", "image/jpg", "image/pjpeg"}
	noTypes    = []string{"application/octet-stream", "binary/octet-stream", "application/x-pdf"}
)

const pdfType = "application/pdf"

// brands are the types of images in boxes, by what the first box says (https://nokiatech.github.io/heif/).
var brands = map[string]string{
	"heic": "image/heic", "heix": "image/heic", "hevc": "image/heic", "hevx": "image/heic", "heim": "image/heic",
	"heis": "image/heic", "mif1": "image/heif", "msf1": "image/heif", "avif": "image/avif", "avis": "image/avif",
}

// typeOf returns what the first bytes of a file say that it is, "" for anything else than a PDF or an image.
func typeOf(head []byte) string {
	begins := func(with string) bool { return bytes.HasPrefix(head, []byte(with)) }
	switch {
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return brands[string(head[8:12])]
	case begins("BM") && len(head) >= 10 && string(head[6:10]) == "\x00\x00\x00\x00":
		return "image/bmp"
	case begins("II*\x00"), begins("MM\x00*"):
		return "image/tiff"
	case bytes.Contains(head, []byte("<svg")):
		return "image/svg+xml"
	case begins("\x89PNG"):
		return "image/png"
	case begins("\xff\xd8\xff"):
		return "image/jpeg"
	case begins("GIF8"):
		return "image/gif"
	case begins("RIFF") && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return "image/webp"
	case bytes.Contains(head, []byte("%PDF")):
		return pdfType
	}
	return ""
}

// mistyped returns why a type that a message tells is not the one that the bytes tell, "" if it is. raw is how the
// message writes it.
func (m *medium) mistyped(is, said string, raw []byte) string {
	image, same := strings.HasPrefix(is, "image/"), sameType(said, is)
	ours := (m.kind == Image) == image
	none := !strings.Contains(said, "/") || slices.Contains(noTypes, said)
	switch {
	case is == "", said == "image/*":
	case ours && (said == "" || same && !bytes.Equal(bytes.ToLower(raw), raw)):
		return "its type is " + is
	case !same && (image && strings.HasPrefix(said, "image/") || none && (ours || m.kind == File)):
		return fmt.Sprintf("it is %s, not %s", is, cmp.Or(said, "of no type"))
	}
	return ""
}

// sameType reports whether bytes of a type may be said to be of another.
func sameType(said, is string) bool {
	jpeg := is == "image/jpeg" && slices.Contains(jpegNames, said)
	return said == is || jpeg || strings.HasPrefix(is, "image/hei") && strings.HasPrefix(said, "image/hei")
}

// isChecked reports whether bytes that are said to be of a type must be.
func isChecked(said string) bool {
	return said == pdfType || slices.Contains(imageTypes, said) || slices.Contains(jpegNames, said)
}
