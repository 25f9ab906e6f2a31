package request

import (
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// smallPage and fewMessages are how many bytes and how many messages are read as light work, and pageCopies how much
// memory a page takes, by its bytes: as it is read, and as it is written.
const (
	smallPage   = 256 << 10
	fewMessages = 250
	pageCopies  = 4
)

// Page reads a page of a log. It reads a small one at once. One of many messages waits for the request's turn, so that
// PostgreSQL does not read the pages of all requests at the same time, and a larger one for memory, too.
//
// Errors: those of Admit, of Heavy and of read.
func (req *Request) Page(
	r postgres.Range, read func(postgres.Range) ([]session.Message, error),
) ([]session.Message, error) {
	small := r
	small.Bytes = min(r.Bytes, smallPage)
	var messages []session.Message
	err := req.Heavy(weightOf(small), func() (err error) {
		messages, err = read(small)
		return err
	})
	isWhole := len(messages) == r.Limit || Bytes(messages) <= small.Bytes
	if err != nil || isWhole {
		return messages, err
	}
	if len(req.held) == 0 { // what it holds is for its pages, too
		err = req.Admit(min(pageCopies*r.Bytes, req.Memory.Size()))
	}
	if err != nil {
		return nil, err
	}
	err = req.Heavy(max(r.Bytes, smallPage+1), func() (err error) {
		messages, err = read(r)
		return err
	})
	return messages, err
}

// weightOf returns the bytes that a small page weighs: as many as a large one if it can have many messages.
func weightOf(small postgres.Range) int64 {
	if small.Limit > fewMessages {
		return smallPage + 1
	}
	return 0
}

// Bytes returns how many bytes messages have.
func Bytes(messages []session.Message) (size int64) {
	for i := range messages {
		size += int64(len(messages[i].Body))
	}
	return size
}
