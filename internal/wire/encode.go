package wire

import (
	"github.com/varve-dev/varve/internal/session"
)

// encoder collects messages.
type encoder struct {
	target session.Format
	bodies [][]byte
}

func (e *encoder) add(body []byte) { e.bodies = append(e.bodies, body) }

// own reports whether the block can be written as its Raw.
func (e *encoder) own(p *Block) bool { return p.Format == e.target && p.Raw != nil && !p.Edited }

// encoders write Messages of any format, none of them an untouched message of this format, in the format. Their order,
// pairing and roles are as the format wants them (see arrange); what it cannot express is written as substitute writes it.
var encoders = map[session.Format]func(e *encoder, run []Message){
	session.OpenAIChat:      encodeChat,
	session.Anthropic:       encodeAnthropic,
	session.OpenAIResponses: encodeResponses,
	session.Gemini:          encodeGemini,
	session.AISDK:           encodeAISDK,
}

// Encode writes the Messages in a format. A run of them that is one whole, untouched message of that format comes out as
// the bytes that came in.
func Encode(target session.Format, list []Message) [][]byte {
	e := &encoder{target: target}
	if target == session.AISDK {
		encodeAISDK(e, list) // a message holds the results of its calls: only there it is known which are untouched
		return e.bodies
	}
	for len(list) > 0 {
		n := untouched(target, list)
		if n > 0 {
			e.add(list[0].Raw)
		} else {
			n = countEdited(target, list)
			encoders[target](e, list[:n])
		}
		list = list[n:]
	}
	return e.bodies
}

// untouched counts the Messages that a message of the target begins with, all of them as they were decoded; 0 if there is
// none.
func untouched(target session.Format, list []Message) int {
	first := &list[0]
	if first.Format != target || first.Raw == nil {
		return 0
	}
	n := 0
	for n < len(list) && list[n].Raw != nil && list[n].Origin == first.Origin && list[n].Part == n && !list[n].Edited {
		n++
	}
	if n != first.Of {
		return 0
	}
	return n
}

// countEdited counts the Messages before the next one that is untouched. All results of a turn are one run in Chat Completions:
// what some of them show comes after the last.
func countEdited(target session.Format, list []Message) int {
	n := 1
	for n < len(list) && (untouched(target, list[n:]) == 0 || target == session.OpenAIChat && list[n].Role == Tool) {
		n++
	}
	return n
}

// with appends a piece of JSON text, and a value.
func with[V string | []byte](dst []byte, text string, value V) []byte {
	dst = append(dst, text...)
	return append(dst, value...)
}

// wrap appends a value between two pieces of JSON text.
func wrap[V string | []byte](dst []byte, before string, value V, after string) []byte {
	dst = append(dst, before...)
	dst = append(dst, value...)
	return append(dst, after...)
}

// separate appends a comma unless the array or object, whose content begins at first, is empty.
func separate(dst []byte, first int) []byte {
	if len(dst) > first {
		return append(dst, ',')
	}
	return dst
}
