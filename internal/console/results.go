package console

import (
	"net/url"
	"strconv"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
)

// resultsPage lists what left the views of a session and can be read back.
type resultsPage struct {
	sessionHead
	Results []protocol.Result
	Tool    string // of the results; "" for all
	Next    string
}

func showResults(v *visit) error {
	h, err := v.head("results")
	if err != nil {
		return err
	}
	page := resultsPage{sessionHead: h, Tool: v.r.URL.Query().Get("tool")}
	q := client.Query{"limit": 50, "tool": page.Tool}
	if page.Results, page.Next, err = list(v, client.ListResults, q, h.Session.ID); err != nil {
		return err
	}
	return v.show("sessions", "Results of "+h.Session.ID, "results.html", &page)
}

// resultPage is a piece of what a ref brings back.
type resultPage struct {
	sessionHead
	Read readBack
	Next string // the address of the next piece, "" at the end
}

// readBack is the API's answer for a ref: a result, or messages.
type readBack struct {
	protocol.ResultPage
	Messages int `json:"messages"`
}

const readBackRoute client.Route[readBack] = "GET sessions/{id}/results/{ref}"

// pieceBytes is how much of a result a page shows.
const pieceBytes = 128 << 10

// showResult shows what left a view, page by page.
func showResult(v *visit) error {
	h, err := v.head("results")
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	read, err := readBackRoute.With(v.ctx, v.api, client.Options{Query: client.Query{
		"offset": q.Get("offset"), "char_offset": q.Get("char_offset"), "max_bytes": pieceBytes, "limit": 2000,
	}}, h.Session.ID, v.r.PathValue("ref"))
	if err != nil {
		return err
	}
	page := resultPage{sessionHead: h, Read: read.Value}
	if next := read.Value.NextOffset; next != nil {
		to := url.Values{"offset": {strconv.FormatInt(*next, 10)}}
		if char := read.Value.NextCharOffset; char > 0 {
			to.Set("char_offset", strconv.FormatInt(char, 10))
		}
		page.Next = "?" + to.Encode()
	}
	return v.show("sessions", page.Read.Ref, "result.html", &page)
}
