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
	"github.com/varve-dev/varve/internal/readback"
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
	var counted reads
	find := func(l *request.List) ([]persist.Result, error) {
		after := persist.Place{Seq: l.After.Order, Part: partIn(l.After)}
		found, err := s.Store.Results(req.Ctx, at, persist.Filter{}, after, l.Limit)
		if err == nil {
			counted, err = s.readsOf(req, found...)
		}
		return found, err
	}
	place := func(last persist.Result) request.Place { return placeOfPart(last.Seq, last.Part) }
	answer := func(r persist.Result) protocol.Result { return counted.answerOf(r) }
	return request.AnswerList(req, "results of "+at.ID, find, answer, place)
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

// readResult handles GET /v1/sessions/{id}/results/{ref}: some lines of what the ref names, or with raw=true its bytes.
func (s *Server) readResult(req *request.Request) error {
	q := req.Query()
	page := linesWanted{raw: q.Flag("raw")}
	page.offset = q.Integer("offset", 1, math.MaxInt32, 1)
	page.limit = q.Integer("limit", 1, maxLines, defaultLines)
	if page.raw && (q.Values.Has("offset") || q.Values.Has("limit")) {
		q.Wrong("raw", request.InvalidRequest, "raw=true is the whole result: offset and limit are for its lines; "+
			"ask for a Range of bytes instead")
	}
	if err := req.Err(); err != nil {
		return err
	}
	at := req.Address()
	name := req.Param("ref")
	if ref, ok := session.ParseMessagesRef(name); ok {
		return s.readMessages(req, at, ref, page)
	}
	found, body, err := readback.Result(req.Ctx, s.Store, at, name)
	if err != nil {
		return err
	}
	s.readBack(req, found.Ref)
	stored := content{mediaType: found.MediaType, sum: found.SHA256, body: body}
	stored.digest(req)
	if page.raw {
		return answerContent(req, stored)
	}
	counted, err := s.readsOf(req, found)
	if err != nil {
		return err
	}
	answer := protocol.ResultPage{Result: counted.answerOf(found), Offset: page.offset, Limit: page.limit}
	answer.Content, answer.NextOffset = numbered(body, page.offset, page.limit)
	return req.JSON(http.StatusOK, answer)
}

// linesWanted is which lines a request asks for, or all bytes.
type linesWanted struct {
	raw           bool
	offset, limit int64
}

// messagesType is the media type of messages as they were appended: one, or an array of several.
const messagesType = "application/vnd.varve.messages+json"

// readMessages answers with messages of the log that a ref names.
func (s *Server) readMessages(
	req *request.Request, at session.Address, ref session.MessagesRef, page linesWanted,
) error {
	run, err := readback.Messages(req.Ctx, s.Store, at, ref)
	if err != nil {
		return err
	}
	s.readBack(req, run.Ref.String())
	stored := content{mediaType: messagesType, sum: run.SHA256[:], body: run.Stored}
	stored.digest(req)
	if page.raw {
		return answerContent(req, stored)
	}
	answer := protocol.MessagesPage{
		Ref: run.Ref.String(), Messages: run.Messages, Tokens: run.Tokens,
		Lines: int64(bytes.Count(run.Text, []byte{'\n'})), Bytes: int64(len(run.Stored)),
		SHA256: hex.EncodeToString(run.SHA256[:]), Offset: page.offset, Limit: page.limit,
	}
	if run.Next != (session.MessagesRef{}) {
		next := run.Next.String()
		answer.NextRef = &next
	}
	answer.Content, answer.NextOffset = numbered(run.Text, page.offset, page.limit)
	return req.JSON(http.StatusOK, answer)
}

// content is what a ref names.
type content struct {
	mediaType string
	sum       []byte
	body      []byte
}

// digest sets the headers that prove the content.
func (c content) digest(req *request.Request) {
	h := req.W.Header()
	h.Set("X-Content-Sha256", hex.EncodeToString(c.sum))
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(c.sum)+":")
}

// answerContent answers with a content's bytes, or the part of them that Range selects.
func answerContent(req *request.Request, of content) error {
	h := req.W.Header()
	h.Set("Content-Type", of.mediaType)
	h.Set("Etag", `"`+hex.EncodeToString(of.sum)+`"`)
	h.Set("Cache-Control", "private, no-cache")
	w := &rangeWriter{ResponseWriter: req.W}
	given := req.R.Header.Get("Range")
	req.R.Header.Del("Range")
	if satisfiable := byteRange(given, len(of.body)); satisfiable != "" {
		req.R.Header.Set("Range", satisfiable)
	}
	http.ServeContent(w, req.R, "", time.Time{}, bytes.NewReader(of.body))
	if w.refused {
		return &request.Failure{
			Code: request.OutsideRange, Size: len(of.body), Detail: fmt.Sprintf("the result has %d bytes: no part of "+
				"the Range %q is in it", len(of.body), spelling.Shorten(given)),
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
