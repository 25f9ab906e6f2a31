package request

import (
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// smallPage is how many bytes of messages are read as light work, and pageCopies how much memory a page takes, by its
// bytes: as it is read, and as it is written.
const (
	smallPage  = 256 << 10
	pageCopies = 4
)

// Page reads a page of a log. It reads a small one at once. A larger one waits for memory and for the request's turn,
// so that PostgreSQL does not read the pages of all requests at the same time.
//
// Errors: those of Admit, of Heavy and of read.
func (req *Request) Page(
	r postgres.Range, read func(postgres.Range) ([]session.Message, error),
) ([]session.Message, error) {
	small := r
	small.Bytes = min(r.Bytes, smallPage)
	messages, err := read(small)
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

// Bytes returns how many bytes messages have.
func Bytes(messages []session.Message) (size int64) {
	for i := range messages {
		size += int64(len(messages[i].Body))
	}
	return size
}
