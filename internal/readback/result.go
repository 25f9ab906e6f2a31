package readback

import (
	"encoding/hex"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
)

// AnswerOf returns a result as the API answers it.
func AnswerOf(r persist.Result) protocol.Result {
	return protocol.Result{
		Ref: r.Ref, Seq: r.Seq, Part: r.Part, Tool: r.Tool, CallID: r.CallID, Category: r.Category,
		MediaType: r.MediaType,
		Bytes:     r.Bytes, Lines: r.Lines, Tokens: r.Tokens, SHA256: hex.EncodeToString(r.SHA256),
		CreatedAt: r.CreatedAt,
	}
}
