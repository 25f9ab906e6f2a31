package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// A file of AWS Bedrock is a conversation in the form of its Converse API (messages, a request, a response, or both),
// or has records of model invocations as Bedrock logs them, one or many: of Converse, or of InvokeModel, whose bodies
// are those of the model's provider. Converse's messages become Anthropic's, which have a place for all but video and
// sound. Records are put together as a log of requests is.
var bedrock = source{
	name:   Bedrock,
	title:  "AWS Bedrock's Converse messages and invocation logs",
	detect: recogniseBedrock,
	into:   Anthropic,
	read:   readBedrock,
}

func recogniseBedrock(s sample) bool {
	first := parseObject(s.members["0"])
	for _, o := range []object{s.object, first} {
		if o.fits("schemaType=ModelInvocationLog") || o.has("input.inputBodyJson") || o.fits("modelId body") {
			return true
		}
		request, response := bedrockSides(o)
		if response.has("output.message.content.0") || converseList(parseArray(request["messages"])) {
			return true
		}
	}
	return converseList(s.messages) || converseMessage(s.object)
}

// converseList recognises a list of Converse's messages by the first of them that has a content.
func converseList(list [][]byte) bool {
	for _, raw := range list {
		if o := parseObject(raw); o.has("content.0") {
			return converseMessage(o)
		}
	}
	return false
}

// converseBlocks are the members of Converse's blocks, of which each has one and no type.
var converseBlocks = []string{
	"text", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", "cachePoint",
	"guardContent", "citationsContent", "searchResult",
}

func converseMessage(o object) bool {
	block := parseObject(o.at("content.0"))
	return o.text("role") != "" && block != nil && !block.has("type") && block.first(converseBlocks...) != nil
}

// bedrockSides returns the request and the response in a value: in its members, or the value itself for both.
func bedrockSides(o object) (request, response object) {
	request = o.object("input.inputBodyJson", "request.body", "request", "body")
	return request, o.object("output.outputBodyJson", "response.body", "response")
}

func readBedrock(f *File, id string, data []byte) error {
	l := &bedrockLog{file: f, requests: newRequests(f), at: map[int]time.Time{}}
	if json.Valid(data) && converseList(parseArray(data)) {
		l.lines(f.elements(parseArray(data)), id)
		return nil
	}
	var messages []entry // on lines of their own
	for e := range f.records(data) {
		if converseMessage(e.object) {
			messages = append(messages, e)
		} else {
			l.record(e)
		}
	}
	l.requests.finish(id, l.at)
	l.lines(slices.Values(messages), id)
	return nil
}

// bedrockLog is a file being read.
type bedrockLog struct {
	file     *File
	requests *requests
	at       map[int]time.Time
}

// lines appends a conversation of messages that have nothing around them.
func (l *bedrockLog) lines(all iter.Seq[entry], id string) {
	d := l.file.newDraft(nil)
	d.read = func(d *draft, e entry) error {
		body, err := converse(d, e.object)
		if err == nil {
			d.add(body)
		}
		return err
	}
	d.records(all)
	d.finish(id)
}

// record reads a record of an invocation.
func (l *bedrockLog) record(e entry) {
	d := l.file.newDraft(nil)
	d.line = e.line
	t, err := bedrockTranscript(d, e)
	l.file.count(e, err)
	if err == nil {
		l.at[e.line] = e.time()
		l.requests.take(e.line, t)
	}
}

func bedrockTranscript(d *draft, e entry) (transcript, error) {
	for _, path := range []string{"input.inputBodyS3Path", "output.outputBodyS3Path"} {
		if e.has(path) {
			return transcript{}, fmt.Errorf("the body is not in the log but in S3: %q is %s", path, e.at(path))
		}
	}
	for _, path := range []string{"errorCode", "output.outputBodyJson.errorCode"} {
		if e.has(path) && !e.has("output.outputBodyJson.output") {
			d.note("the invocation failed: %s", e.text(path))
		}
	}
	request, response := bedrockBodies(e.object)
	switch {
	case converseList(parseArray(request["messages"])), response.has("output.message.content"):
		return converseTranscript(d, request, response)
	case parseArray(request["messages"]) != nil:
		return invokeTranscript(request, response)
	}
	return promptTranscript(request, response)
}

// bedrockBodies returns the bodies of a record, which may be strings of JSON. That of a stream is a list of its events.
func bedrockBodies(o object) (request, response object) {
	request, response = bedrockSides(o)
	for _, path := range []string{"input.inputBodyJson", "request.body", "body"} {
		if inner := parseObject(unfolded(o.at(path))); inner != nil {
			request = inner
			break
		}
	}
	for _, path := range []string{"output.outputBodyJson", "response.body"} {
		raw := unfolded(o.at(path))
		if inner := parseObject(raw); inner != nil {
			return request, inner
		}
		if events := parseArray(raw); events != nil {
			return request, streamed(events)
		}
	}
	return request, response
}

// converseTranscript reads the request and the response of Converse.
func converseTranscript(d *draft, request, response object) (transcript, error) {
	t := transcript{format: session.Anthropic}
	if blocks := converseContent(d, request["system"]); blocks != nil {
		t.system = message("system", list(blocks))
	}
	for i, raw := range parseArray(request["messages"]) {
		body, err := converse(d, parseObject(raw))
		if err != nil {
			return t, fmt.Errorf("messages[%d]: %w", i, err)
		}
		t.messages = append(t.messages, body)
	}
	if answer := parseObject(response.at("output.message")); answer != nil {
		body, err := converse(d, answer)
		if err != nil {
			return t, fmt.Errorf("output.message: %w", err)
		}
		t.reply = [][]byte{body}
	}
	return t, nil
}

// invokeTranscript reads the bodies of an invocation that have messages: Anthropic's, or those of a model that takes
// OpenAI Chat's.
func invokeTranscript(request, response object) (transcript, error) {
	t := transcript{format: session.OpenAIChat, messages: parseArray(request["messages"]), reply: chatReply(response)}
	if format, _ := tellList(t.messages); format == "" {
		return t, errors.New("the messages of the invocation are of no known form")
	}
	if request.has("anthropic_version") || formatOfReply(response) == session.Anthropic {
		t.format, t.reply = session.Anthropic, anthropicReply(response)
		if has(request["system"]) {
			t.system = message("system", request["system"])
		}
	}
	return t, nil
}

// The members in which models have a prompt that is a text, and in which they answer it.
var (
	bedrockPrompts = []string{"prompt", "inputText", "message", "inputs"}
	bedrockAnswers = []string{
		"generation", "outputText", "results.0.outputText", "completion", "outputs.0.text", "generations.0.text",
		"choices.0.text", "text", "completions.0.data.text",
	}
)

// promptTranscript reads an invocation of a model that completes a text.
func promptTranscript(request, response object) (transcript, error) {
	t := transcript{format: session.Anthropic}
	if prompt := nonEmpty(request.first(bedrockPrompts...)); prompt != nil {
		t.messages = [][]byte{message("user", prompt)}
	}
	if answer := nonEmpty(response.first(bedrockAnswers...)); answer != nil {
		t.reply = [][]byte{message("assistant", answer)}
	}
	if t.messages == nil && t.reply == nil {
		return t, fmt.Errorf("no messages and no prompt: the request has %s", memberList(request))
	}
	return t, nil
}
