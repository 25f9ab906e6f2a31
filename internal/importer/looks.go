package importer

import (
	"github.com/varve-dev/varve/internal/session"
)

// Looks returns the format that a message surely is of, "" for one that fits several, or none.
func Looks(message []byte) session.Format {
	o := parseObject(message)
	for block := range objects(o["content"]) {
		if block.fits("type=tool-call|tool-result toolCallId") {
			return session.AISDK
		}
	}
	switch {
	case foreign(o):
		return ""
	case o.text("role") == "model":
		return session.Gemini
	}
	return signal(o)
}
