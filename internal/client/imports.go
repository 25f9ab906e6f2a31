package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/varve-dev/varve/internal/protocol"
)

// NewImport describes an import before its first line. The zero value looks at the content.
type NewImport struct {
	Key     string // Idempotency-Key: the same key is the same import
	From    string // what the lines are; "" looks at the content
	Session string // the session's id, for a file of another source
}

// BeginImport is POST /v1/imports without any line yet; FeedImport sends them.
func (c *Client) BeginImport(ctx context.Context, n NewImport) (Answer[protocol.Import], error) {
	query := url.Values{"more": {"true"}}
	if n.From != "" {
		query.Set("from", n.From)
	}
	if n.Session != "" {
		query.Set("session", n.Session)
	}
	k := call{method: http.MethodPost, path: []string{"imports"}, query: query, idempotency: n.Key}
	return decode[protocol.Import](ctx, c, k)
}

// ImportFeed is a part of a file, or all of it.
type ImportFeed struct {
	Lines    io.Reader // read once, while it is sent
	FromLine int64     // the number of the first of them, from 1
	More     bool      // others follow the last of them
}

// FeedImport is POST /v1/imports/{import}. It is sent once: after an error, Import tells which lines are stored.
func (c *Client) FeedImport(ctx context.Context, id string, f ImportFeed) (a Answer[protocol.Import], err error) {
	query := url.Values{"from_line": {strconv.FormatInt(f.FromLine, 10)}, "more": {strconv.FormatBool(f.More)}}
	k := call{method: http.MethodPost, path: []string{"imports", id}, query: query}
	res, err := c.send(ctx, k, f.Lines)
	if err != nil {
		return a, err
	}
	return read[protocol.Import](ctx, c, k, res)
}

// Import is GET /v1/imports/{import}.
func (c *Client) Import(ctx context.Context, id string) (Answer[protocol.Import], error) {
	return decode[protocol.Import](ctx, c, importCall(id))
}

func importCall(id string) call { return call{method: http.MethodGet, path: []string{"imports", id}} }

// ImportLines is GET /v1/imports/{import}/lines: at most limit lines from the nth on, of one outcome unless it is "".
func (c *Client) ImportLines(
	ctx context.Context, id string, from int64, limit int, outcome string,
) (Answer[protocol.ImportLines], error) {
	query := url.Values{"from": {strconv.FormatInt(from, 10)}, "limit": {strconv.Itoa(limit)}}
	if outcome != "" {
		query.Set("outcome", outcome)
	}
	return get[protocol.ImportLines](ctx, c, query, "imports", id, "lines")
}

// EachImportLine calls do for the lines of an import, page by page: those of one outcome unless it is "".
func (c *Client) EachImportLine(ctx context.Context, id, outcome string, do func(protocol.ImportLine)) error {
	for from := int64(1); ; {
		page, err := c.ImportLines(ctx, id, from, importLinePage, outcome)
		if err != nil {
			return err
		}
		for _, line := range page.Value.Data {
			do(line)
		}
		if page.Value.Next == nil {
			return nil
		}
		from = *page.Value.Next
	}
}

const importLinePage = 1000
