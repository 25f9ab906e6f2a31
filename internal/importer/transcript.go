package importer

import "github.com/varve-dev/varve/internal/session"

// transcript is what one JSON value holds of a conversation with a provider: a list of messages, a request, a request
// with its response, or a response alone.
type transcript struct {
	format   session.Format
	system   []byte // the request's system prompt as a message; nil for none
	messages [][]byte
	reply    [][]byte // what the response added
	id       string   // of the response, "" if it is not known
	follows  string   // id of the response that the request continues without repeating it
}

// shape is where the requests and responses of a format hold the conversation.
type shape struct {
	messages string                     // the request's member
	system   string                     // the request's member, "" for none
	prompt   func(system []byte) []byte // the system prompt as a message
	reply    func(response object) [][]byte
}

var shapes = map[session.Format]shape{
	session.OpenAIChat: {messages: "messages", reply: chatReply},
	session.Anthropic: {
		messages: "messages", system: "system", reply: anthropicReply,
		prompt: func(system []byte) []byte { return message("system", system) },
	},
	session.OpenAIResponses: {
		messages: "input", system: "instructions", prompt: responsesPrompt, reply: responsesReply,
	},
	session.Gemini: {
		messages: "contents", system: "systemInstruction", prompt: geminiPrompt, reply: geminiReply,
	},
	session.AISDK: {messages: "messages", reply: func(object) [][]byte { return nil }},
}

// parseTranscript reads a value as a transcript in a format; it reports false if the value has nothing of a
// conversation.
func parseTranscript(format session.Format, raw []byte) (transcript, bool) {
	if list := parseArray(raw); list != nil {
		return transcript{format: format, messages: list}, true
	}
	request, response := sides(parseObject(raw))
	s := shapes[format]
	t := transcript{
		format: format, messages: parseArray(request[s.messages]), reply: s.reply(response),
		id: response.text("id"), follows: request.text("previous_response_id"),
	}
	if prompt := request[s.messages]; format == session.OpenAIResponses && isString(prompt) {
		t.messages = [][]byte{message("user", prompt)}
	}
	if system := request[s.system]; has(system) && string(system) != `""` {
		t.system = s.prompt(system)
	}
	return t, t.messages != nil || t.reply != nil
}

// choices counts the answers of a response with which no conversation continues: all but the first.
func (f *File) choices(raw []byte) {
	_, response := sides(parseObject(raw))
	for _, name := range []string{"choices", "candidates"} {
		for i := range parseArray(response[name]) {
			if i > 0 {
				f.count(entry{}, skipped("another choice of a response"))
			}
		}
	}
}

// sides returns the request and the response in a value, which may be logged with what HTTP has around them: members of
// it, or the value itself for both, in which only one of them finds what it looks for.
func sides(top object) (request, response object) {
	return top.object("request.body", "request", "request_params", "body"), top.object("response.body", "response")
}

// A conversation continues with the first of a response's answers.
func chatReply(response object) [][]byte { return one(response.at("choices.0.message")) }

func geminiReply(response object) [][]byte { return one(response.at("candidates.0.content")) }

// anthropicReply leaves out what is about the response rather than the conversation.
func anthropicReply(response object) [][]byte {
	if !response.fits("type=message role=assistant content[]") {
		return nil
	}
	return one(message("assistant", response["content"]))
}

func responsesReply(response object) [][]byte { return parseArray(response["output"]) }

func one(message []byte) [][]byte {
	if parseObject(message) == nil {
		return nil
	}
	return [][]byte{message}
}

// responsesPrompt returns nil for the items that a response may have in place of the instructions: they are among its
// input.
func responsesPrompt(instructions []byte) []byte {
	if !isString(instructions) {
		return nil
	}
	return item("system", instructions)
}

// item returns a message of the Responses API with that content.
func item(role string, content []byte) []byte {
	return fill(`{"type":"message","role":"%","content":%}`, []byte(role), content)
}

// geminiPrompt keeps the parts: the role of a system instruction means nothing, and may be missing.
func geminiPrompt(instruction []byte) []byte {
	parts := parseObject(instruction)["parts"]
	if isString(instruction) {
		parts = fill(`[{"text":%}]`, instruction)
	}
	if !has(parts) {
		return nil
	}
	return fill(`{"role":"system","parts":%}`, parts)
}
