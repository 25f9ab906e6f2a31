package compact

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// origin is what a tool result is a copy of: a window that one of Varve's tools read back, or the capped text of an
// uploaded result. A copy keeps a ref of its own, but its line names the original.
type origin struct {
	readBack bool   // a tool of Varve's answered it
	source   string // the original's ref, with the lines that the window has; "" for none
}

// readers are the tools of Varve's whose answers are copies of what is stored.
var readers = []string{
	"read_result", "grep_results", "list_results", "search_session", "get_messages", "get_context",
}

// isReader reports whether a tool is one of Varve's. Clients may put the name of their server before it:
// mcp__varve__read_result.
func isReader(tool string) bool {
	return slices.ContainsFunc(readers, func(name string) bool {
		server, ok := strings.CutSuffix(tool, name)
		return ok && (server == "" || strings.IndexByte("_./:-", server[len(server)-1]) >= 0)
	})
}

// originOf returns the origin of result r of a message, which answers a call.
func (h *history) originOf(body []byte, r *part) (found origin) {
	found.readBack = isReader(r.tool)
	if !found.readBack && !h.namesUpload(r.value.Of(body)) {
		return found
	}
	at := wire.Part{Kind: wire.Result, Index: r.index, Value: r.value}
	text := wire.ResultText(h.in.Format, body, at).Text
	if found.readBack {
		found.source = sourceIn(text)
	} else {
		found.source = h.uploadIn(text, r.callID)
	}
	return found
}

// sourceIn returns the ref of what a passage is of, with the lines or bytes that it has; "" for other texts.
func sourceIn(text []byte) string {
	p, _, ok := session.ParsePassage(text)
	switch {
	case !ok:
		return ""
	case p.First > 0:
		return fmt.Sprintf("%s lines %d-%d", p.Ref, p.First, p.Last)
	}
	return fmt.Sprintf("%s bytes %d-%d", p.Ref, p.Offset, p.Offset+p.Bytes-1)
}

// namesUpload reports whether a value may have the capped text of an uploaded result.
func (h *history) namesUpload(value []byte) bool {
	return slices.ContainsFunc(h.in.Uploads, func(u Upload) bool { return bytes.Contains(value, []byte(u.Ref)) })
}

// uploadIn returns the ref of the uploaded result whose capped text a text is, "" for none: a ref, or the whole line
// that names the upload, may be quoted anywhere.
func (h *history) uploadIn(text []byte, callID string) string {
	sum := DigestOf(text)
	for i := range h.in.Uploads {
		u := &h.in.Uploads[i]
		of := u.CallID == "" || callID == "" || u.CallID == callID
		if of && u.TextDigest == sum {
			return u.Ref
		}
	}
	return ""
}
