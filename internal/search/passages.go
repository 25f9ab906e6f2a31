package search

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// The bounds of what is indexed. A passage of 32 KiB cannot have as many words as a tsvector may have, nor as many
// positions.
const (
	passageBytes = 32 << 10
	blockBytes   = 32 << 10 // of texts whose words are indexed together
	messageBytes = 1 << 20  // of a message, or of an uploaded result
)

// passage is a piece of a message or of an uploaded result.
type passage struct {
	Key              uuid.UUID // of the session
	Seq              int64     // 0 of an uploaded result
	N                int       // of the message, from 1; of an uploaded result, see uploadPassages
	Role, Kind, Tool string
	Ref              string
	Text             string
}

// passagesOf cuts the texts of a message that are found by some rules into passages, and reports whether they have all
// of it.
func passagesOf(m *session.Message, by rules) (list []passage, whole bool, err error) {
	texts, err := readback.Texts(m)
	if err != nil {
		return nil, false, err
	}
	room := messageBytes
	for i := range texts {
		t := &texts[i]
		if !by.has(t.Kind) {
			continue
		}
		for _, text := range cutAll(t.Text) {
			if room -= len(text); room < 0 {
				return list, false, nil
			}
			list = append(list, passage{
				Seq: m.Seq, N: len(list) + 1, Role: m.Role, Kind: t.Kind, Tool: t.Tool, Ref: t.Ref, Text: text,
			})
		}
	}
	return list, true, nil
}

// cutAll cuts a text into passages.
func cutAll(text string) (list []string) {
	for len(text) > 0 {
		size := cut(text)
		list = append(list, text[:size])
		text = text[size:]
	}
	return list
}

// cut returns how much of a text is the next passage: all of it, or as much as a passage may have, up to the end of a
// word if there is one near.
func cut(text string) int {
	if len(text) <= passageBytes {
		return len(text)
	}
	const near = 1 << 10
	if space := strings.LastIndexAny(text[passageBytes-near:passageBytes], " \t\r\n"); space >= 0 {
		return passageBytes - near + space + 1
	}
	end := passageBytes
	for text[end]&0xC0 == 0x80 { // inside a character
		end--
	}
	return end
}

// passagesIn reads the passages of a block that may have the words of a search.
func (s store) passagesIn(ctx context.Context, tenant uuid.UUID, l *look, b *candidate) (list []passage, err error) {
	key := session.Key{Tenant: tenant, Key: b.Key}
	var read []passage
	if len(b.Seqs) == 0 {
		read, err = s.passagesOfUpload(ctx, key, b.N)
	} else {
		read, err = s.passagesAt(ctx, key, b, l.State.rules())
	}
	for _, p := range read {
		if p.Key = b.Key; l.Language != "simple" || mayHave(p.Text, l.Words) {
			list = append(list, p)
		}
	}
	return list, err
}

// passagesAt reads those of the messages of a block. What is gone or damaged has none.
func (s store) passagesAt(ctx context.Context, key session.Key, b *candidate, by rules) (list []passage, err error) {
	messages, err := s.MessagesAt(ctx, key, b.Seqs)
	if errors.Is(err, session.ErrDamaged) && len(b.Seqs) > 1 { // one of them is, and the others are read one by one
		for i := range b.Seqs {
			one := candidate{Key: b.Key, N: b.N, Seqs: b.Seqs[i : i+1]}
			read, err := s.passagesAt(ctx, key, &one, by)
			if err != nil {
				return nil, err
			}
			list = append(list, read...)
		}
		return list, nil
	}
	if err = unlessLost(err); err != nil {
		return nil, err
	}
	for i := range messages {
		if messages[i].RemovedAt != nil {
			continue
		}
		of, _, _ := passagesOf(&messages[i], by) // one without texts has none
		if b.N > 0 {
			of = of[min(b.N-1, len(of)):min(b.N, len(of))]
		}
		list = append(list, of...)
	}
	return list, nil
}

// unlessLost returns an error but for that of what is gone or damaged.
func unlessLost(err error) error {
	if errors.Is(err, session.ErrDamaged) || errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}
