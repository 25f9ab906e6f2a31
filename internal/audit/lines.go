package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Page is the next rows of a trail, oldest first, and the head of the chain at the same moment.
type Page struct {
	Rows []Entry
	Head Head
}

// A Reader reads the next rows behind a place, at most limit of them.
type Reader func(after int64, limit int) (Page, error)

// eachPage is how many rows Each holds at a time.
const eachPage = 1000

// Each calls do with the rows behind a place, oldest first, a page at a time, and returns the head of the chain as it
// was when the last one was read.
func Each(after int64, read Reader, do func(*Page) error) (Head, error) {
	for {
		page, err := read(after, eachPage)
		if err == nil {
			err = do(&page)
		}
		if err != nil || len(page.Rows) < eachPage {
			return page.Head, err
		}
		after = page.Rows[len(page.Rows)-1].N
	}
}

// Line is one line of an exported trail: a row or, as the last line, the head of the chain.
type Line struct {
	*Entry
	Head *Head `json:"head,omitempty"`
}

func write(out io.Writer, l Line) error {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = out.Write(append(text, '\n'))
	}
	return err
}

// Copy writes the rows behind a place, and then the head of the chain.
func Copy(out io.Writer, after int64, read Reader) error {
	head, err := Each(after, read, func(page *Page) error {
		for i := range page.Rows {
			if err := write(out, Line{Entry: &page.Rows[i]}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return write(out, Line{Head: &head})
}

// ErrCut reports an export without its last line.
var ErrCut = errors.New("the export of the audit trail is cut off: its last line must be the head of the chain")

// Read holds an exported trail against a chain, a line at a time, and tells what is not as it was written. It returns
// the head that the export ends with.
//
// Errors: ErrCut; those of the reader, and of a line that is no JSON.
func (c *Chain) Read(in io.Reader, tell func(Break) error) (Head, error) {
	lines := json.NewDecoder(in)
	for n := 1; ; n++ {
		var l Line
		err := lines.Decode(&l)
		if errors.Is(err, io.EOF) {
			return c.last, ErrCut
		}
		if err != nil {
			return c.last, fmt.Errorf("line %d of the audit trail: %w", n, err)
		}
		var found []Break
		switch {
		case l.Head != nil:
			found = c.End(*l.Head)
		case l.Entry != nil:
			for _, document := range []*json.RawMessage{&l.Detail, &l.Before, &l.After} {
				if string(*document) == "null" {
					*document = nil
				}
			}
			found = c.Add(l.Entry)
		}
		for _, b := range found {
			if err := tell(b); err != nil {
				return c.last, err
			}
		}
		if l.Head != nil {
			return *l.Head, nil
		}
	}
}
