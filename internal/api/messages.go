package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// defaultMessages is how many messages a page of the log has unless the caller sets a limit.
const defaultMessages = 100

// listMessages handles GET /v1/sessions/{id}/messages.
func (s *Server) listMessages(req *request.Request) error {
	q := req.Query()
	limit := int(q.Integer("limit", 1, session.MaxMessagePage, defaultMessages))
	r := postgres.Range{
		After: q.Integer("from_seq", 1, session.MaxSessionMessages+1, 1) - 1,
		To:    q.Integer("to_seq", 1, session.MaxSessionMessages+1, 0),
		Limit: limit + 1, Bytes: maxMessagePageBytes, Removed: true,
	}
	if err := req.Err(); err != nil {
		return err
	}
	_, found, err := s.Store.Messages(req.Ctx, req.Address(), r)
	if err != nil {
		return err
	}
	page := pageOf(found, limit)
	body := req.Buffer()
	body.B = appendMessagePage(body.B, page, len(page) < len(found))
	return req.Bytes(http.StatusOK, request.JSONType, body.B)
}

// pageOf returns the beginning of found that makes a page: at least one message, then as many as limit and
// maxMessagePageBytes allow. A remainder shows that there are more.
func pageOf(found []session.Message, limit int) []session.Message {
	size := 0
	for i := range found {
		if size += len(found[i].Body); i == limit || i > 0 && size > maxMessagePageBytes {
			return found[:i]
		}
	}
	return found
}

// maxMessagePageBytes ends a page of large messages before its limit.
const maxMessagePageBytes = 16 << 20

// appendMessagePage writes messages by hand, because encoding/json would rewrite them.
func appendMessagePage(dst []byte, found []session.Message, more bool) []byte {
	dst = append(dst, `{"data":[`...)
	for i := range found {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMessage(dst, &found[i])
	}
	dst = append(dst, `],"has_more":`...)
	dst = strconv.AppendBool(dst, more)
	dst = append(dst, `,"next_seq":`...)
	if !more {
		return append(dst, "null}"...)
	}
	return append(strconv.AppendInt(dst, found[len(found)-1].Seq+1, 10), '}')
}

func appendMessage(dst []byte, m *session.Message) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, m.Seq, 10)
	dst = append(dst, `,"role":`...)
	dst = rawjson.Quote(dst, []byte(m.Role))
	dst = append(dst, `,"format":`...)
	dst = rawjson.Quote(dst, []byte(m.Format))
	dst = append(dst, `,"tokens":`...)
	dst = strconv.AppendInt(dst, int64(m.Tokens), 10)
	dst = append(dst, `,"client_id":`...)
	if m.ClientID == "" {
		dst = append(dst, "null"...)
	} else {
		dst = rawjson.Quote(dst, []byte(m.ClientID))
	}
	dst = append(dst, `,"created_at":"`...)
	dst = m.CreatedAt.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	if m.RemovedAt != nil {
		dst = append(dst, `,"removed_at":"`...)
		dst = append(m.RemovedAt.AppendFormat(dst, time.RFC3339Nano), '"')
	}
	dst = append(dst, `,"message":`...)
	return append(append(dst, m.Body...), '}')
}
