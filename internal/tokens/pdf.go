package tokens

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"strconv"
)

var (
	pdfPage  = regexp.MustCompile(`/Type\s*/Page[^s\w]`)
	pdfCount = regexp.MustCompile(`/(?:Count|N)\s+(\d{1,5})\b`)
)

// bytesOfPage is how many bytes of a PDF count as a page where its objects are compressed, and nothing tells their
// number.
const bytesOfPage = 100 << 10

// Pages returns how many pages the PDF that is in base64 has, 0 for what is no PDF.
func Pages(encoded []byte) int {
	if !bytes.HasPrefix(encoded, []byte("JVBERi")) { // %PDF
		return 0
	}
	file := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))
	n, _ := base64.StdEncoding.Decode(file, encoded)
	file = file[:n]
	pages := len(pdfPage.FindAllIndex(file, -1))
	for _, found := range pdfCount.FindAllSubmatch(file, -1) {
		count, _ := strconv.Atoi(string(found[1]))
		pages = max(pages, min(count, n/64)) // a page takes more than that, whatever the number says
	}
	if pages == 0 {
		pages = 1 + n/bytesOfPage
	}
	return pages
}
