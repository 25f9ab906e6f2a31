package importer

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

var requestLog = source{
	name:  RequestLog,
	title: "logs of requests to a model and its responses",
	detect: func(s sample) bool {
		first, _ := tell(sampleOf(parseObject(s.members["0"])))
		return s.line && s.format != "" || s.object == nil && first != ""
	},
	read: readRequestLog,
}

// requests puts conversations together from a log. Every request holds the whole history so far: one whose messages
// begin with all those of an earlier request continues that request's conversation and adds the rest. One
// that names the response before it (previous_response_id) adds all that it has. Any other begins a conversation.
//
//   - A line is a request, a response, or both. A response answers the last request before it that has none.
//   - The model's messages are taken from the next request, because that is what the model saw. A response is kept only
//     where no request repeats it, and where the request repeats all of it but its signatures.
//   - A message that a later request of the same conversation no longer has (a retry) is kept.
//   - cache_control marks move from request to request and make no difference.
type requests struct {
	file     *File
	sure     session.Format // of lines that could be of several formats
	threads  []*thread
	ends     map[[32]byte]*thread // digests of all messages of a request to the conversation
	answered map[string]*thread   // ids of responses to the conversation
	asked    *thread              // of the last request, nil if it has its response
}

// thread is a conversation being put together.
type thread struct {
	format   session.Format
	messages []Message
	reply    int // messages at the end that only a response has
}

func readRequestLog(f *File, id string, data []byte) error {
	all := slices.Collect(f.records(data))
	r := newRequests(f)
	r.sure = sureFormat(all)
	for _, e := range all {
		r.line(e)
	}
	r.finish(id, nil)
	return nil
}

func newRequests(f *File) *requests {
	return &requests{file: f, ends: map[[32]byte]*thread{}, answered: map[string]*thread{}}
}

// take adds a request with its response.
func (r *requests) take(line int, t transcript) {
	if t.messages != nil {
		r.request(line, t)
	}
	if t.reply != nil {
		r.response(line, t)
	}
}

// finish appends the conversations to the file. Their messages have the times of their records, as far as they are
// known.
func (r *requests) finish(id string, at map[int]time.Time) {
	for _, t := range r.threads {
		for i, m := range t.messages {
			t.messages[i].At = at[m.Line]
		}
		r.file.add(id, t.format, t.messages)
	}
}

// sureFormat returns the format of the first line that fits one format only: a request alone may fit several.
func sureFormat(all []entry) session.Format {
	for _, e := range all {
		if format, sure := tell(sampleOf(e.object)); sure {
			return format
		}
	}
	return session.OpenAIChat
}

func (r *requests) line(e entry) {
	format, sure := tell(sampleOf(e.object))
	if format == "" {
		r.file.count(e, skipped(cmp.Or(e.text("type"), "no request and no response")))
		return
	}
	if !sure && shapes[r.sure].messages == shapes[format].messages {
		format = r.sure
	}
	r.file.count(e, nil)
	x, _ := parseTranscript(format, e.raw)
	r.file.choices(e.raw)
	r.take(e.line, x)
}

// request adds to its conversation what the request has beyond the one that it continues.
func (r *requests) request(line int, x transcript) {
	all := x.messages
	if x.system != nil {
		all = append([][]byte{x.system}, all...)
	}
	ends := digests(x.format, all)
	t, known := r.continued(ends)
	if before := r.answered[x.follows]; t == nil && before != nil {
		t, known = before, len(all)-len(x.messages)
	}
	if t == nil {
		t = r.begin(x.format)
	}
	rest := all[known:]
	if len(rest) == 0 && t.reply > 0 {
		r.file.note(line, "the request was sent again: only the last response to it counts")
	}
	if len(rest) == 0 || t.repeated(rest) {
		rest = r.settle(line, t, rest)
		t.messages = t.messages[:len(t.messages)-t.reply]
	}
	t.add(line, rest, 0)
	if x.follows == "" && len(all) > 0 {
		r.ends[ends[len(all)-1]] = t
	}
	r.asked = t
}

// continued finds the conversation with the longest request that is a beginning of this one, and how long that is.
func (r *requests) continued(ends [][32]byte) (*thread, int) {
	for i, end := range slices.Backward(ends) {
		if t := r.ends[end]; t != nil {
			return t, i + 1
		}
	}
	return nil, 0
}

func (r *requests) begin(format session.Format) *thread {
	t := &thread{format: format}
	r.threads = append(r.threads, t)
	return t
}

// response adds what the model answered.
func (r *requests) response(line int, x transcript) {
	t := r.asked
	if t == nil || t.format != x.format {
		t = r.begin(x.format)
	}
	t.add(line, x.reply, len(x.reply))
	if x.id != "" {
		r.answered[x.id] = t
	}
	r.asked = nil
}

// add appends messages, of which the last reply ones are known from a response only.
func (t *thread) add(line int, bodies [][]byte, reply int) {
	t.reply = reply
	for _, body := range bodies {
		t.messages = append(t.messages, Message{Line: line, Body: body})
	}
}

// digests returns, for each message, the digest of the messages from the first to it.
func digests(format session.Format, messages [][]byte) [][32]byte {
	list := make([][32]byte, len(messages))
	sum := sha256.Sum256([]byte(format))
	for i, body := range messages {
		sum = sha256.Sum256(appendPlain(sum[:], body))
		list[i] = sum
	}
	return list
}

// appendPlain appends a JSON value without cache marks, and without the array that a mark needs around a text.
func appendPlain(dst, raw []byte) []byte {
	switch {
	case len(raw) > 0 && raw[0] == '{':
		dst = append(dst, '{')
		for key, value := range rawjson.Members(raw, 0) {
			if !rawjson.KeyIs(raw, key, "cache_control") {
				dst = append(append(dst, key.Of(raw)...), ':')
				dst = append(appendPlain(dst, value.Of(raw)), ',')
			}
		}
		return append(dst, '}')
	case len(raw) > 0 && raw[0] == '[':
		elements := parseArray(raw)
		if len(elements) == 1 {
			block := parseObject(elements[0])
			delete(block, "cache_control")
			if len(block) == 2 && block.text("type") == "text" && isString(block["text"]) {
				return append(dst, block["text"]...)
			}
		}
		dst = append(dst, '[')
		for _, element := range elements {
			dst = append(appendPlain(dst, element), ',')
		}
		return append(dst, ']')
	}
	return append(dst, raw...)
}
