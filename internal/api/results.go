package api

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
)

// resultsQuery are the parameters of a list of results.
var resultsQuery = append([]string{"tool", "category", "from_seq", "to_seq"}, request.ListQuery...)

// listResults handles GET /v1/sessions/{id}/results.
func (s *Server) listResults(req *request.Request) error {
	at := req.Address()
	q := req.Query()
	filter := persist.Filter{Tool: q.Text("tool", ""), Category: q.Text("category", "")}
	filter.FromSeq = q.Integer("from_seq", 0, session.MaxSessionMessages+1, 0)
	filter.ToSeq = q.Integer("to_seq", 1, session.MaxSessionMessages+1, 0)
	for name, text := range map[string]string{"tool": filter.Tool, "category": filter.Category} {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			q.Wrong(name, request.InvalidRequest, "must be UTF-8 without NUL")
		}
	}
	find := func(l *request.List) ([]persist.Result, error) {
		after := persist.Place{Seq: l.After.Order, Part: partIn(l.After)}
		return req.Store.Results(req.Ctx, at, filter, after, l.Limit)
	}
	place := func(last persist.Result) request.Place { return placeOfPart(last.Seq, last.Part) }
	return request.AnswerList(req, fmt.Sprintf("results of %s %+v", at.ID, filter), find, readback.AnswerOf, place)
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

// readQuery are the parameters of reading what a ref names.
var readQuery = []string{"raw", "offset", "limit", "char_offset", "chars", "max_bytes", "plain", "text", "pointer"}

// readResult handles GET /v1/sessions/{id}/results/{ref}: some lines of what the ref names, the value that a JSON
// pointer names in it, or with raw=true its bytes.
func (s *Server) readResult(req *request.Request) error {
	q := req.Query()
	if q.Flag("raw") {
		for _, name := range readQuery[1:] {
			if q.Values.Has(name) {
				q.Wrong("raw", request.InvalidRequest, "raw=true is the whole result: %s is for its lines; "+
					"ask for a Range of bytes instead", name)
			}
		}
		if err := req.Err(); err != nil {
			return err
		}
		return s.readRaw(req)
	}
	maxBytes := int(q.Integer("max_bytes", readback.MinBytes, readback.MaxBytes, readback.DefaultBytes))
	text := q.Flag("text")
	if q.Values.Has("pointer") {
		return s.readPointer(req, q.Text("pointer", ""), maxBytes)
	}
	want := readback.LinesWanted{
		Offset: q.Integer("offset", 1, math.MaxInt64, 1), Limit: q.Integer("limit", 1, readback.MaxLines,
			readback.DefaultLines),
		CharOffset: q.Integer("char_offset", 0, math.MaxInt64, 0), Chars: q.Integer("chars", 1, readback.MaxBytes, 0),
		MaxBytes: maxBytes, Plain: q.Flag("plain"),
	}
	if err := req.Err(); err != nil {
		return err
	}
	source, err := s.sourceOf(req, want.Want())
	if err != nil {
		return err
	}
	return s.answerLines(req, source, want, text)
}

// sourceOf opens what the path's ref names. Messages are read and written as text whole, however little of it is read:
// that takes memory, which the request keeps, and its turn at a processor.
func (s *Server) sourceOf(req *request.Request, want persist.Want) (source *readback.Source, err error) {
	ref := req.Param("ref")
	if _, messages := session.ParseMessagesRef(ref); !messages {
		return readback.OpenAt(req.Ctx, req.Store, req.Address(), ref, want)
	}
	if err := req.Admit(min(messagesMemory, req.Memory.Size())); err != nil {
		return nil, err
	}
	err = req.Heavy(messagesMemory, func() (err error) {
		source, err = readback.OpenAt(req.Ctx, req.Store, req.Address(), ref, want)
		return err
	})
	return source, err
}

// messagesMemory is about how much memory messages take that a ref names.
const messagesMemory = 32 << 20

// answerLines answers with lines of a source.
func (s *Server) answerLines(
	req *request.Request, source *readback.Source, want readback.LinesWanted, text bool,
) error {
	of, err := source.Lines(req.Ctx, text)
	if err != nil {
		return err
	}
	lines, err := readback.Lines(req.Ctx, of, want)
	if err != nil {
		return err
	}
	if of != source.Stored {
		sum := of.SHA256()
		lines.TextSHA256 = hex.EncodeToString(sum[:])
	}
	s.readBack(req)
	digest(req, source.Stored)
	if source.Run == nil {
		return req.JSON(http.StatusOK, protocol.ResultPage{Result: readback.AnswerOf(*source.Result), LinePage: *lines})
	}
	sum := source.Stored.SHA256()
	run := source.Run
	answer := protocol.MessagesPage{
		Ref: source.Ref, Messages: run.Messages, Tokens: run.Tokens, Lines: of.Lines(), Bytes: source.Stored.Size(),
		SHA256: hex.EncodeToString(sum[:]), LinePage: *lines,
	}
	if run.Next != (session.MessagesRef{}) {
		answer.NextRef = new(run.Next.String())
	}
	return req.JSON(http.StatusOK, answer)
}

// readBack counts that something of the request's session was read back.
func (s *Server) readBack(req *request.Request) {
	if req.R.Method != http.MethodHead {
		s.usage.ReadBack(req.Address())
	}
}

// readPointer answers with a value in a result that is JSON.
func (s *Server) readPointer(req *request.Request, pointer string, maxBytes int) error {
	q := req.Query()
	for _, name := range []string{"offset", "limit", "char_offset", "chars", "plain", "text"} {
		if q.Values.Has(name) {
			q.Wrong("pointer", request.InvalidRequest, "a pointer names a value, and %s is for lines: leave one of "+
				"them out", name)
		}
	}
	if err := req.Err(); err != nil {
		return err
	}
	source, err := s.sourceOf(req, persist.Want{})
	if err != nil {
		return err
	}
	value, err := readback.Pointer(req.Ctx, source.Stored, pointer, maxBytes)
	if err != nil {
		return err
	}
	s.readBack(req)
	digest(req, source.Stored)
	sum := source.Stored.SHA256()
	return req.JSON(http.StatusOK, protocol.ResultValue{
		Ref: source.Ref, SHA256: hex.EncodeToString(sum[:]), JSONValue: *value,
	})
}

// scanWeight is how many processors a grep, a search or a timeline weighs, whose size shows only when it has ended.
const scanWeight = 1

// grepQuery are the parameters of a grep in one result, and, with refs, in several.
var grepQuery = []string{"pattern", "regex", "ignore_case", "text", "before", "after", "max_matches", "max_bytes",
	"cursor"}

// grepResult handles GET /v1/sessions/{id}/results/{ref}/grep.
func (s *Server) grepResult(req *request.Request) error {
	return s.grep(req, []string{req.Param("ref")})
}

// grepResults handles GET /v1/sessions/{id}/results/grep: in the refs of the query, or in all results.
func (s *Server) grepResults(req *request.Request) error {
	var refs []string
	if given := req.Query().Text("refs", ""); given != "" {
		refs = strings.Split(given, ",")
	}
	return s.grep(req, refs)
}

func (s *Server) grep(req *request.Request, refs []string) error {
	q := req.Query()
	want := readback.GrepWanted{
		Refs: refs, Pattern: q.Text("pattern", ""), Regex: q.Flag("regex"), IgnoreCase: q.Flag("ignore_case"),
		Text:       q.Flag("text"),
		Before:     int(q.Integer("before", 0, readback.MaxContext, 0)),
		After:      int(q.Integer("after", 0, readback.MaxContext, 0)),
		MaxMatches: int(q.Integer("max_matches", 1, readback.MaxMatches, readback.DefaultMatches)),
		MaxBytes:   int(q.Integer("max_bytes", readback.MinBytes, readback.MaxBytes, readback.DefaultBytes)),
		Cursor:     q.Text("cursor", ""),
	}
	if err := req.Err(); err != nil {
		return err
	}
	if err := req.Admit(min(readback.ScanMemory, req.Memory.Size())); err != nil {
		return err
	}
	var found *protocol.Matches
	err := req.CPU.Do(req.Ctx, req.Tenant, scanWeight, func() (err error) {
		found, err = readback.Grep(req.Ctx, req.Store, req.Address(), want)
		return err
	})
	if err == nil {
		for range found.Found() {
			s.readBack(req)
		}
	}
	return request.AnswerFound(req, found, err, request.AsIs)
}

// searchSession handles GET /v1/sessions/{id}/search.
func (s *Server) searchSession(req *request.Request) error {
	q := req.Query()
	want := readback.SearchWanted{
		Query: q.Text("q", ""), Limit: int(q.Integer("limit", 1, readback.MaxHits, readback.DefaultHits)),
		MaxBytes: int(q.Integer("max_bytes", readback.MinBytes, readback.MaxBytes, readback.DefaultBytes)),
		Cursor:   q.Text("cursor", ""),
	}
	if err := req.Err(); err != nil {
		return err
	}
	if err := req.Admit(min(readback.ScanMemory, req.Memory.Size())); err != nil {
		return err
	}
	var found *protocol.Found
	err := req.CPU.Do(req.Ctx, req.Tenant, scanWeight, func() (err error) {
		found, err = readback.Search(req.Ctx, req.Store, req.Address(), want)
		return err
	})
	return request.AnswerFound(req, found, err, request.AsIs)
}
