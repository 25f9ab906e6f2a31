package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Page is the next rows of a trail, oldest first, and the head of the chain at the same moment.
type Page struct {
	Begins *Anchor // behind which the rows are; nil if they are behind the row that was asked for
	Late   Late    // of rows of this page
	Rows   []Entry
	Head   Head
}

// A Reader reads the next rows behind a place, at most limit of them. What was written behind the row began was written
// since the first page was read.
type Reader func(after, began int64, limit int) (Page, error)

// eachPage is how many rows Each holds at a time.
const eachPage = 1000

// Each calls do with the rows behind a place, oldest first, a page at a time, and returns the head of the chain as it
// was when the last one was read.
func Each(after int64, read Reader, do func(*Page) error) (Head, error) {
	for began := int64(math.MaxInt64); ; {
		page, err := read(after, began, eachPage)
		if err == nil {
			err = do(&page)
		}
		if err != nil || len(page.Rows) < eachPage {
			return page.Head, err
		}
		after = page.Rows[len(page.Rows)-1].N
		began = min(began, page.Head.N)
	}
}

// Line is one line of an exported trail: where it begins, if rows were removed because their time was over; what the
// next rows have blanked of those before while it was read; a row; or, as the last line, the head of the chain.
type Line struct {
	Begins *Anchor `json:"begins,omitempty"`
	Late   Late    `json:"late,omitempty"`
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
		if page.Begins != nil {
			if err := write(out, Line{Begins: page.Begins}); err != nil {
				return err
			}
		}
		if len(page.Late) > 0 {
			if err := write(out, Line{Late: page.Late}); err != nil {
				return err
			}
		}
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
		case l.Begins != nil:
			found = c.Begin(l.Begins)
		case l.Late != nil:
			c.takeLate(l.Late)
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
