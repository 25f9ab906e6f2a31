package importer

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// exchange is what one JSON value holds of a conversation with a provider: a list of messages, a request, a request with
// its response, or a response alone.
type exchange struct {
	format   session.Format
	system   []byte // what the request says ahead of its messages, as a message; nil for none
	messages [][]byte
	reply    [][]byte // what the response added
	id       string   // of the response, "" if it is not known
	follows  string   // id of the response that the request goes on from without repeating it
}

// shape is where the requests and responses of a format hold the conversation.
type shape struct {
	messages string                     // the request's member
	system   string                     // the request's member, "" for none
	prompt   func(system []byte) []byte // the system prompt as a message
	reply    func(response object) [][]byte
}

var shapes = map[session.Format]shape{
	session.OpenAIChat:      {messages: "messages", reply: chatReply},
	session.Anthropic:       {messages: "messages", system: "system", prompt: anthropicPrompt, reply: anthropicReply},
	session.OpenAIResponses: {messages: "input", system: "instructions", prompt: responsesPrompt, reply: responsesReply},
	session.Gemini:          {messages: "contents", system: "systemInstruction", prompt: geminiPrompt, reply: geminiReply},
	session.AISDK:           {messages: "messages", reply: func(object) [][]byte { return nil }},
}

// parseExchange reads a value as one of a format. It is false if the value has nothing of a conversation.
func parseExchange(format session.Format, raw []byte) (exchange, bool) {
	if list := parseArray(raw); list != nil {
		return exchange{format: format, messages: list}, true
	}
	request, response := sides(parseObject(raw))
	s := shapes[format]
	e := exchange{
		format: format, messages: parseArray(request[s.messages]), reply: s.reply(response),
		id: response.text("id"), follows: request.text("previous_response_id"),
	}
	if said := request[s.messages]; format == session.OpenAIResponses && isString(said) {
		e.messages = [][]byte{message("user", said)}
	}
	if system := request[s.system]; has(system) && string(system) != `""` {
		e.system = s.prompt(system)
	}
	return e, e.messages != nil || e.reply != nil
}

// all is every message that the exchange has besides the system prompt.
func (e *exchange) all() [][]byte { return append(slices.Clip(e.messages), e.reply...) }

// sides are the request and the response in a value: members of it, or both the value itself, where only one of them
// will find what it looks for.
func sides(top object) (request, response object) {
	request, response = payload(top["request"]), payload(top["response"])
	for _, name := range []string{"request_params", "body"} {
		if request == nil {
			request = parseObject(top[name])
		}
	}
	if request == nil {
		request = top
	}
	if response == nil {
		response = top
	}
	return request, response
}

// payload is a logged request or response, or the body of one that was logged with what HTTP has about it.
func payload(raw []byte) object {
	o := parseObject(raw)
	if body := parseObject(o["body"]); body != nil {
		return body
	}
	return o
}

// chatReply is the first choice: a conversation goes on with one.
func chatReply(response object) [][]byte {
	if choices := parseArray(response["choices"]); len(choices) > 0 {
		return one(parseObject(choices[0])["message"])
	}
	return nil
}

// anthropicReply leaves out what is about the response rather than the conversation.
func anthropicReply(response object) [][]byte {
	if response.text("type") != "message" || response.text("role") != "assistant" || parseArray(response["content"]) == nil {
		return nil
	}
	return one(message("assistant", response["content"]))
}

func responsesReply(response object) [][]byte { return parseArray(response["output"]) }

// geminiReply is the first candidate, for the reason of chatReply.
func geminiReply(response object) [][]byte {
	if candidates := parseArray(response["candidates"]); len(candidates) > 0 {
		return one(parseObject(candidates[0])["content"])
	}
	return nil
}

func one(message []byte) [][]byte {
	if parseObject(message) == nil {
		return nil
	}
	return [][]byte{message}
}

func anthropicPrompt(system []byte) []byte { return message("system", system) }

// responsesPrompt is nil for the items that a response may have in place of the instructions: they are among its input.
func responsesPrompt(instructions []byte) []byte {
	if !isString(instructions) {
		return nil
	}
	return item("system", instructions)
}

// item is a message of the Responses API with that content.
func item(role string, content []byte) []byte {
	return fill(`{"type":"message","role":"%","content":%}`, []byte(role), content)
}

// geminiPrompt keeps the parts: the role of a system instruction means nothing, and may be missing.
func geminiPrompt(instruction []byte) []byte {
	if isString(instruction) {
		return fill(`{"role":"system","parts":[{"text":%}]}`, instruction)
	}
	o := parseObject(instruction)
	if !o.has("parts") {
		return nil
	}
	return fill(`{"role":"system","parts":%}`, o["parts"])
}
