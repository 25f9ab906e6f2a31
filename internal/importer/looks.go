package importer

import (
	"github.com/varve-dev/varve/internal/session"
)

// Looks returns the format that a message surely is of, "" for one that fits several, or none.
func Looks(message []byte) session.Format {
	o := parseObject(message)
	isModels := marked("type=tool-call|tool-result toolCallId", "type=image image", "type=file mediaType !file",
		"type=reasoning text", "type=tool-approval-request|tool-approval-response approvalId")
	for block := range objects(o["content"]) {
		if isModels(sample{members: block}) {
			return session.AISDK
		}
	}
	switch {
	case parseArray(o["toolInvocations"]) != nil, parseArray(o["experimental_attachments"]) != nil:
		return session.AISDK
	case foreign(o):
		return ""
	case o.text("role") == "model":
		return session.Gemini
	}
	return signal(o)
}
