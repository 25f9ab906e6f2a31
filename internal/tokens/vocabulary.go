package tokens

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// The files have the tokens in the order of their ranks, each after its length as a varint.
var (
	//go:embed o200k.zst
	o200k []byte
	//go:embed cl100k.zst
	cl100k []byte
)

// A piece of a text is counted by itself. The patterns are those of https://github.com/openai/tiktoken without
// `\s+(?!\S)`, for which pieceOf stands.
const (
	spaces   = `\t\n\v\f\r \x{85}\p{Z}`
	ending   = `(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))`
	capitals = `\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`
	smalls   = `\p{Ll}\p{Lm}\p{Lo}\p{M}`
	before   = `[^\r\n\p{L}\p{N}]?`
	figures  = `\p{N}{1,3}`
	symbols  = ` ?[^` + spaces + `\p{L}\p{N}]+`
	blanks   = `[` + spaces + `]*[\r\n]+|([` + spaces + `]+)`

	cl100kPieces = `^(?:` + ending + `|` + before + `\p{L}+|` + figures + `|` + symbols + `[\r\n]*|` + blanks + `)`
	o200kPieces  = `^(?:` + before + `[` + capitals + `]*[` + smalls + `]+` + ending + `?|` +
		before + `[` + capitals + `]+[` + smalls + `]*` + ending + `?|` +
		figures + `|` + symbols + `[\r\n/]*|` + blanks + `)`
)

// vocabulary counts by byte-pair encoding.
type vocabulary struct {
	ranks  map[string]uint32
	pieces *regexp.Regexp
}

// vocabularies are opened at their first use: a map of 100,000 or 200,000 texts, a few dozen milliseconds of work.
var vocabularies = map[string]func() (*vocabulary, error){
	"o200k":  sync.OnceValues(func() (*vocabulary, error) { return openVocabulary(o200k, o200kPieces, 200_000) }),
	"cl100k": sync.OnceValues(func() (*vocabulary, error) { return openVocabulary(cl100k, cl100kPieces, 100_000) }),
}

func openVocabulary(compressed []byte, pieces string, size int) (*vocabulary, error) {
	reader, err := zstd.NewReader(bytes.NewReader(compressed), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	v := &vocabulary{make(map[string]uint32, size), regexp.MustCompile(pieces)}
	text := string(data)
	for at := 0; at < len(data); {
		length, n := binary.Uvarint(data[at:])
		end := at + n + int(length)
		if n <= 0 || end > len(data) {
			return nil, fmt.Errorf("the token of rank %d is cut", len(v.ranks))
		}
		v.ranks[text[at+n:end]] = uint32(len(v.ranks))
		at = end
	}
	return v, nil
}

// count returns the number of tokens of a text of at most longest bytes.
func (v *vocabulary) count(text string) (total int) {
	var m merger
	for len(text) > 0 {
		n := v.pieceOf(text)
		if _, ok := v.ranks[text[:n]]; ok {
			total++
		} else {
			total += m.count(v.ranks, text[:n])
		}
		text = text[n:]
	}
	return total
}

// pieceOf returns the length of the first piece of a text. White space before a word leaves its last character to it.
func (v *vocabulary) pieceOf(text string) int {
	if n := plainWord(text); n > 0 {
		return n
	}
	found := v.pieces.FindStringSubmatchIndex(text)
	if found == nil { // no pattern fails, but a text must end
		return len(text)
	}
	n := found[1]
	if found[2] >= 0 && n < len(text) {
		if _, last := utf8.DecodeLastRuneInString(text[:n]); last < n {
			n -= last
		}
	}
	return n
}

// upperOrQuote has what may continue a piece after a word: another word in one vocabulary, an ending in the other.
const upperOrQuote = "ABCDEFGHIJKLMNOPQRSTUVWXYZ'"

// plainWord returns the length of a word of ASCII with the blank before it, 0 if the text does not begin with one. Most
// pieces are such words, and both patterns agree on them.
func plainWord(text string) int {
	n := 0
	if strings.HasPrefix(text, " ") {
		n++
	}
	if n < len(text) && 'A' <= text[n] && text[n] <= 'Z' {
		n++
	}
	first := n
	for n < len(text) && 'a' <= text[n] && text[n] <= 'z' {
		n++
	}
	if n == first || n < len(text) && (text[n] >= utf8.RuneSelf || strings.IndexByte(upperOrQuote, text[n]) >= 0) {
		return 0
	}
	return n
}

// none is the rank of what is no token.
const none = math.MaxUint32

// block is how many parts have one lowest rank, so that a merge need not look at all.
const block = 32

// merger merges the bytes of a piece to tokens. A part is named by where it begins.
type merger struct {
	next, prev [longest + 1]int16
	rank       [longest]uint32 // of the part and the next one as one token
	lowest     [longest/block + 1]uint32
}

// count merges the leftmost two parts of the lowest rank until no two are a token, and returns how many are left.
func (m *merger) count(ranks map[string]uint32, piece string) int {
	rank := func(i int) {
		m.rank[i] = none
		if middle := int(m.next[i]); middle < len(piece) {
			if r, ok := ranks[piece[i:m.next[middle]]]; ok {
				m.rank[i] = r
			}
		}
	}
	refresh := func(i int) {
		from := i / block * block
		m.lowest[i/block] = none
		for _, r := range m.rank[from:min(from+block, len(piece))] {
			m.lowest[i/block] = min(m.lowest[i/block], r)
		}
	}
	for i := range len(piece) {
		m.next[i], m.prev[i+1] = int16(i+1), int16(i)
	}
	blocks := (len(piece) + block - 1) / block
	for i := range len(piece) {
		rank(i)
	}
	for b := range blocks {
		refresh(b * block)
	}
	for left := len(piece); ; left-- {
		b := 0
		for other, r := range m.lowest[:blocks] {
			if r < m.lowest[b] {
				b = other
			}
		}
		if m.lowest[b] == none {
			return left
		}
		i := b * block
		for m.rank[i] != m.lowest[b] {
			i++
		}
		gone := int(m.next[i])
		m.rank[gone] = none
		m.next[i] = m.next[gone]
		m.prev[m.next[i]] = int16(i)
		rank(i)
		refresh(i)
		if gone/block != i/block {
			refresh(gone)
		}
		if i > 0 {
			before := int(m.prev[i])
			rank(before)
			refresh(before)
		}
	}
}
