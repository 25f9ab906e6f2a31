package compact

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/policy"
)

// Uploaded is a result that was uploaded, as far as its text needs it.
type Uploaded struct {
	Upload    // without TextDigest
	Tool      string
	MediaType string
	Bytes     int64
	Chars     int64
	Tokens    int64
	Head      []byte // the first UploadEdge bytes
	Tail      []byte // the last ones, without those of Head
}

// UploadEdge is how many bytes of either end of an uploaded result its text is made of.
const UploadEdge = 512 << 10

// maxUploadText bounds the text of an uploaded result, in bytes, whatever the policy allows.
const maxUploadText = 256 << 10

// TextOf returns the text that stands for an uploaded result in a message, and the line of it that names the result: ""
// if the text is all of it. The policy's cap makes it, that of the default policy if that has none; the same policy
// never cuts it again.
func (u Uploaded) TextOf(p *policy.Policy, window int) (shown, mark string, err error) {
	words, err := wordsOf(&p.Wording)
	if err != nil {
		return "", "", fmt.Errorf("compact: wording: %w", err)
	}
	head, tail := u.Head, u.Tail
	whole := int64(len(head)+len(tail)) == u.Bytes
	if !whole {
		head, tail = WholeRunes(head, tail)
	}
	if !IsText(u.MediaType, head) || !IsText(u.MediaType, tail) {
		mark = fmt.Sprintf("[%s, %d bytes, not shown here: read_result %s]", kindOf(u.MediaType), u.Bytes, u.Ref)
		return mark, mark, nil
	}
	limits := uploadCap(p, window)
	all := append(bytes.Clone(head), tail...)
	if whole && limits.exceeds(limits.count.text(all), all) == "" {
		return string(all), "", nil
	}
	shown, mark = u.cut(words, limits, all)
	return shown, mark, nil
}

// cut returns head and tail around the line that names the result, within the limits together.
func (u Uploaded) cut(words *words, limits resultCap, all []byte) (shown, mark string) {
	v := values{
		action: Cap, refText: u.Ref, tool: u.Tool, chars: int(u.Chars), bytes: int(u.Bytes), tokens: int(u.Tokens),
		callID: u.CallID, count: limits.count,
	}
	line := u.line(words, v)
	head, tail := limits.less(line).cut(all)
	v.cut = v.tokens - limits.count.text(head) - limits.count.text(tail)
	v.head = text.Len(head)
	line = u.line(words, v)
	return string(head) + line + string(tail), strings.TrimSpace(line)
}

// line returns the policy's line about what is cut, which must name the tool that reads it.
func (u Uploaded) line(words *words, v values) string {
	line := string(words.parts[Cap].Append(nil, v.append))
	if call := "read_result " + u.Ref; !strings.Contains(line, call) {
		line = strings.TrimRight(line, "\n") + "\n[in full: " + call + "]\n\n"
	}
	if kind := kindOf(u.MediaType); kind != plainText {
		line = strings.TrimRight(line, "\n") + "\n[" + kind + "]\n\n"
	}
	return line
}

// uploadCap returns the limits of an uploaded result's text.
func uploadCap(p *policy.Policy, window int) resultCap {
	limits := p.Cap
	if !p.Enabled || !limits.Enabled || limits.MaxTokens+limits.MaxBytes+limits.MaxChars+limits.MaxLines == 0 &&
		limits.MaxRatio+limits.UnitRatio == 0 {
		limits = policy.Default().Cap
	}
	for _, ratio := range []float64{limits.MaxRatio, limits.UnitRatio} {
		if tokens := int(ratio * float64(window)); tokens > 0 && (limits.MaxTokens == 0 || tokens < limits.MaxTokens) {
			limits.MaxTokens = tokens
		}
	}
	if limits.MaxBytes == 0 || limits.MaxBytes > maxUploadText {
		limits.MaxBytes = maxUploadText
	}
	return resultCap{Cap: &limits, count: counter{p.Tokens.Tokenizer}, rule: "cap.max_tokens"}
}

// less returns the limits that leave room for a line.
func (c resultCap) less(line string) resultCap {
	const slack = 16 // the line's figures become longer, and tokens of pieces do not quite add up
	limits := *c.Cap
	for _, room := range []struct {
		limit *int
		used  int
	}{
		{&limits.MaxTokens, c.count.text([]byte(line))},
		{&limits.MaxBytes, len(line)},
		{&limits.MaxChars, text.Len([]byte(line))},
		{&limits.MaxLines, strings.Count(line, "\n") + 1},
	} {
		if *room.limit > 0 {
			*room.limit = max(*room.limit-room.used-min(slack, room.used), 1)
		}
	}
	c.Cap = &limits
	return c
}

const plainText = "text/plain"

// kindOf returns a media type without its parameters.
func kindOf(mediaType string) string {
	if kind, _, err := mime.ParseMediaType(mediaType); err == nil {
		return kind
	}
	return plainText
}

// IsText reports whether bytes of a media type can be shown as text.
func IsText(mediaType string, b []byte) bool {
	kind := kindOf(mediaType)
	for _, family := range []string{"image/", "audio/", "video/", "font/"} {
		if strings.HasPrefix(kind, family) && !strings.HasSuffix(kind, "+xml") {
			return false
		}
	}
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

// WholeRunes returns the beginning and the end of a text without the pieces of characters at the cut between them.
func WholeRunes(head, tail []byte) (first, last []byte) {
	for n := 1; n < utf8.UTFMax && n <= len(head); n++ {
		if r := head[len(head)-n:]; utf8.RuneStart(r[0]) {
			if !utf8.FullRune(r) {
				head = head[:len(head)-n]
			}
			break
		}
	}
	for n := 0; n < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); n++ {
		tail = tail[1:]
	}
	return head, tail
}
