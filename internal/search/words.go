package search

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// hashOf returns what the index has of a word.
func hashOf(word string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(word))
	return int32(h.Sum32())
}

// tenantWord returns the word that every block of a tenant has. No text has one with a space.
func tenantWord(tenant uuid.UUID) string { return " " + tenant.String() }

// wordsOf returns the hashes of words, and of the tenant's, each once, in order.
func wordsOf(tenant uuid.UUID, words []string) []int32 {
	hashes := []int32{hashOf(tenantWord(tenant))}
	for _, w := range words {
		hashes = append(hashes, hashOf(w))
	}
	return union(hashes, nil)
}

// union returns the hashes of two lists, each once, in order.
func union(a, b []int32) []int32 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// alternatives returns lists of words, of which what a query finds has all words of at least one. The query is as
// PostgreSQL's querytree writes it: quoted words, and what negates nothing between them. Around the lists there may be
// parentheses, without which they find more.
func alternatives(tree string) (lists [][]string) {
	list := []string{}
	for i := 0; i < len(tree); i++ {
		switch tree[i] {
		case '\'':
			word, size := quoted(tree[i+1:])
			list = append(list, word)
			i += size
		case '|':
			lists = append(lists, list)
			list = []string{}
		}
	}
	return append(lists, list)
}

// quoted returns the word at the beginning of a text up to its quote, and their size. Quotes and backslashes in the
// word are written twice.
func quoted(text string) (word string, size int) {
	var w strings.Builder
	for size < len(text) {
		c := text[size]
		twice := size+1 < len(text) && text[size+1] == c
		size++
		if c == '\'' && !twice {
			break
		}
		if twice && (c == '\'' || c == '\\') {
			size++
		}
		w.WriteByte(c)
	}
	return w.String(), size
}

// mayHave reports whether a text can have all words of one of the lists. The words of the language simple, unlike those
// of others, stand in the text as they are.
func mayHave(text string, lists [][]string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(lists, func(list []string) bool {
		isMissing := func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) }
		return !slices.ContainsFunc(list, isMissing)
	})
}

// block is some passages of a session whose words are indexed together.
type block struct {
	First int64
	N     int // of the passage, from 1, if it is one of several of a large message; of an uploaded result's
	Bytes int
	Seqs  []int32
	Words []int32
}

// blocksOf puts the passages of messages together to blocks, those of a message into one, unless they are too large.
func blocksOf(tenant uuid.UUID, passages []indexedPassage) (blocks []block) {
	var open block
	for len(passages) > 0 {
		n := 1
		size := passages[0].Bytes
		for ; n < len(passages) && passages[n].Seq == passages[0].Seq; n++ {
			size += passages[n].Bytes
		}
		of := passages[:n]
		passages = passages[n:]
		if open.Bytes > 0 && open.Bytes+size > blockBytes {
			blocks = append(blocks, open)
			open = block{}
		}
		if size <= blockBytes {
			open.add(tenant, of)
			continue
		}
		for i := range of {
			alone := block{N: i + 1}
			alone.add(tenant, of[i:i+1])
			blocks = append(blocks, alone)
		}
	}
	if open.Bytes > 0 {
		blocks = append(blocks, open)
	}
	return blocks
}

// add adds the passages of a message.
func (b *block) add(tenant uuid.UUID, of []indexedPassage) {
	if len(b.Seqs) == 0 {
		b.First = of[0].Seq
	}
	b.Seqs = append(b.Seqs, int32(of[0].Seq))
	for _, p := range of {
		b.Bytes += p.Bytes
		b.Words = union(b.Words, wordsOf(tenant, p.Words))
	}
}

// takeIn adds the block before it.
func (b *block) takeIn(before *block) {
	b.First = before.First
	b.Bytes += before.Bytes
	b.Seqs = slices.Concat(before.Seqs, b.Seqs)
	b.Words = union(before.Words, b.Words)
}
