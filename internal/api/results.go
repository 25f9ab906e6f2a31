package api

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

func answerOfResult(r persist.Result) protocol.Result {
	return protocol.Result{
		Ref: r.Ref, Seq: r.Seq, Part: r.Part, Tool: r.Tool, CallID: r.CallID, Category: r.Category,
		MediaType: r.MediaType,
		Bytes:     r.Bytes, Lines: r.Lines, Tokens: r.Tokens, SHA256: hex.EncodeToString(r.SHA256),
		CreatedAt: r.CreatedAt,
	}
}

// listResults handles GET /v1/sessions/{id}/results.
func (s *Server) listResults(req *request.Request) error {
	at := req.Address()
	find := func(l *request.List) ([]persist.Result, error) {
		after := persist.Place{Seq: l.After.Order, Part: partIn(l.After)}
		return s.Store.Results(req.Ctx, at, after, l.Limit)
	}
	place := func(last persist.Result) request.Place { return placeOfPart(last.Seq, last.Part) }
	return request.AnswerList(req, "results of "+at.ID, find, answerOfResult, place)
}

// placeOfPart returns the place of a part of a message: lists of results have part numbers where other lists have ids.
func placeOfPart(seq int64, part int) request.Place {
	at := request.Place{Order: seq}
	binary.BigEndian.PutUint64(at.ID[8:], uint64(part))
	return at
}

// partIn returns the part that a place names, -1 at the beginning of a list.
func partIn(p request.Place) int {
	if p == (request.Place{}) {
		return -1
	}
	return int(binary.BigEndian.Uint64(p.ID[8:]))
}

// The lines that a page of a result has.
const (
	defaultLines = 200
	maxLines     = 2000
)

// readResult handles GET /v1/sessions/{id}/results/{ref}: some of its lines, or with raw=true its bytes.
func (s *Server) readResult(req *request.Request) error {
	q := req.Query()
	raw := q.Flag("raw")
	offset := q.Integer("offset", 1, math.MaxInt32, 1)
	limit := q.Integer("limit", 1, maxLines, defaultLines)
	if raw && (q.Values.Has("offset") || q.Values.Has("limit")) {
		q.Wrong("raw", request.InvalidRequest, "raw=true is the whole result: offset and limit are for its lines; "+
			"ask for a Range of bytes instead")
	}
	if err := req.Err(); err != nil {
		return err
	}
	ref, err := session.ParseResultRef(req.Param("ref"))
	if err != nil {
		return err
	}
	found, body, err := s.Store.Result(req.Ctx, req.Address(), ref)
	if err != nil {
		return err
	}
	h := req.W.Header()
	h.Set("X-Content-Sha256", hex.EncodeToString(found.SHA256))
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(found.SHA256)+":")
	if raw {
		return answerContent(req, found, body)
	}
	page := protocol.ResultPage{Result: answerOfResult(found), Offset: offset, Limit: limit}
	page.Content, page.NextOffset = numbered(body, offset, limit)
	return req.JSON(http.StatusOK, page)
}

// answerContent answers with a result's bytes, or the part of them that Range selects.
func answerContent(req *request.Request, found persist.Result, body []byte) error {
	h := req.W.Header()
	h.Set("Content-Type", found.MediaType)
	h.Set("Etag", `"`+hex.EncodeToString(found.SHA256)+`"`)
	h.Set("Cache-Control", "private, no-cache")
	w := &rangeWriter{ResponseWriter: req.W}
	given := req.R.Header.Get("Range")
	req.R.Header.Del("Range")
	if satisfiable := byteRange(given, len(body)); satisfiable != "" {
		req.R.Header.Set("Range", satisfiable)
	}
	http.ServeContent(w, req.R, "", time.Time{}, bytes.NewReader(body))
	if w.refused {
		return &request.Failure{
			Code: request.OutsideRange, Size: len(body), Detail: fmt.Sprintf("the result has %d bytes: no part of "+
				"the Range %q is in it", len(body), spelling.Shorten(given)),
		}
	}
	return nil
}

// byteRange returns a Range header without what http.ServeContent gets wrong: it takes the last 0 bytes for a range
// that exists. It returns "" for a header to be ignored: one of another unit, or for an empty body.
func byteRange(header string, size int) string {
	unit, set, _ := strings.Cut(header, "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || size == 0 {
		return ""
	}
	kept := slices.DeleteFunc(strings.Split(set, ","), func(spec string) bool {
		length, suffix := strings.CutPrefix(strings.TrimSpace(spec), "-")
		return suffix && length != "" && strings.Trim(length, "0") == ""
	})
	if len(kept) == 0 {
		return fmt.Sprintf("bytes=%d-", size) // behind the end
	}
	return "bytes=" + strings.Join(kept, ",")
}

// rangeWriter keeps http.ServeContent from answering a wrong Range in plain text.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	w.refused = status == http.StatusRequestedRangeNotSatisfiable
	if !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// numbered returns limit lines of a text from line offset on, each with its number before it as cat -n writes it, and
// the number of the line after them, nil at the end.
func numbered(body []byte, offset, limit int64) (content string, next *int64) {
	var page bytes.Buffer
	n := int64(0)
	for line := range bytes.Lines(body) {
		n++
		if n >= offset+limit {
			return page.String(), &n
		}
		if n >= offset {
			fmt.Fprintf(&page, "%6d\t%s", n, line)
		}
	}
	return page.String(), nil
}
