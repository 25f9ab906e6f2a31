package importer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
)

// A session of Google's Agent Development Kit is a list of events with a Gemini content each; an eval set has cases of
// turns: what the user said, the calls, and the final answer. Python's versions write the members of a part with
// underscores and nulls: a part is written as Gemini's API names it, around its values.
//
//   - What several agents of a session say is one conversation: they see each other's events.
//   - The pieces of a stream (partial) come again as a whole, and are skipped; so are events without a content, which
//     change the state.
//   - Calls of an eval set without a response stay open.
var adk = source{
	name:  ADK,
	title: "Google ADK's sessions and eval sets",
	detect: marked(
		"events[] appName|app_name", "events.0.author events.0.content|events.0.actions",
		"author content.parts[] invocationId|invocation_id|actions", "eval_set_id|evalSetId eval_cases|evalCases",
		"eval_id|evalId conversation[]", "0.author 0.content.parts[] 0.invocationId|0.invocation_id|0.actions",
		"0.events.0.author 0.events.0.content|0.events.0.actions", "0.query 0.expected_tool_use|0.reference",
		"0.data.0.query 0.data.0.expected_tool_use|0.data.0.reference",
	),
	into:   Gemini,
	record: adkEvent,
	read:   readADK,
}

// readADK finds the events or turns of each value: of a session, of the cases of an eval set, or the values themselves.
func readADK(f *File, id string, data []byte) error {
	bare := f.newDraft(nil)
	for e := range f.records(data) {
		cases := parseArray(e.first("eval_cases", "evalCases"))
		if cases == nil {
			cases = [][]byte{e.raw}
		}
		for run := range f.elements(cases) {
			turns := parseArray(run.first("events", "conversation", "data"))
			switch {
			case turns != nil:
				f.readRun(id, run.object, turns)
			case run.has("author"), run.has("query"):
				bare.record(entry{object: run.object, raw: run.raw, line: e.line})
			default:
				f.count(run, errors.New(`no list "events" of a session, nor "conversation" of an eval case`))
			}
		}
	}
	bare.finish(id)
	return nil
}

// adkEvent reads an event of a session, or a turn of an eval case.
func adkEvent(d *draft, e entry) error {
	d.at = moment(e.first("timestamp", "creation_timestamp", "creationTimestamp"))
	switch {
	case e.has("query"):
		return adkExpectation(d, e)
	case e.first("user_content", "userContent") != nil:
		return adkTurn(d, e)
	case e.is("partial"):
		return skipped("partial event")
	case e.first("errorCode", "error_code") != nil:
		return skipped("error of the model")
	case !adkContent(d, e.object["content"], adkRole(e)):
		return skipped("event without content")
	}
	return nil
}

// adkRole returns the role of an event whose content has none.
func adkRole(e entry) string {
	if e.text("author") == "user" {
		return "user"
	}
	return "model"
}

// adkContent adds a content, and reports false if it has no parts.
func adkContent(d *draft, raw []byte, role string) bool {
	o := parseObject(raw)
	if name := o.text("role"); name != "" {
		role = name
	}
	var parts [][]byte
	for _, part := range parseArray(o["parts"]) {
		if part = geminiNamed(part); part != nil {
			parts = append(parts, part)
		}
	}
	addParts(d, role, parts)
	return parts != nil
}

// adkTurn adds what the user said, the calls with their responses, and the answer.
func adkTurn(d *draft, e entry) error {
	if !adkContent(d, e.first("user_content", "userContent"), "user") {
		return errors.New("user_content has no parts")
	}
	between := e.object.object("intermediate_data", "intermediateData")
	for event := range objects(between.first("invocation_events", "invocationEvents")) {
		adkContent(d, event["content"], "model")
	}
	adkCalls(d, e, between)
	for _, pair := range parseArray(between.first("intermediate_responses", "intermediateResponses")) {
		if said := parseArray(pair); len(said) == 2 {
			adkContent(d, fill(`{"parts":%}`, said[1]), "model")
		}
	}
	adkContent(d, e.first("final_response", "finalResponse"), "model")
	return nil
}

// adkCalls adds the calls of a turn as one content, and their responses as another.
func adkCalls(d *draft, e entry, between object) {
	var calls, responses [][]byte
	ids := map[string][][]byte{} // of calls without an id in the file, by name
	for i, raw := range parseArray(between.first("tool_uses", "toolUses")) {
		o := parseObject(raw)
		id := nonEmpty(o["id"])
		if id == nil {
			id = quote(fmt.Sprintf("call-%d-%d", e.line, i+1))
			ids[o.text("name")] = append(ids[o.text("name")], id)
		}
		calls = append(calls, geminiCall(object{"id": id, "name": o["name"], "args": o["args"]}))
	}
	for o := range objects(between.first("tool_responses", "toolResponses")) {
		id, open := nonEmpty(o["id"]), ids[o.text("name")]
		if id == nil && len(open) > 0 {
			id, ids[o.text("name")] = open[0], open[1:]
		}
		const response = `{"functionResponse":{"name":%,"response":%%}}`
		responses = append(responses, fill(response, inString(o["name"]), or(o["response"], "{}"), member("id", id)))
	}
	addParts(d, "model", calls)
	addParts(d, "user", responses)
}

// adkExpectation adds a turn of the oldest eval files: a query, the calls and the answer that are expected.
func adkExpectation(d *draft, e entry) error {
	addParts(d, "user", geminiParts(e.object["query"]))
	var calls [][]byte
	for i, raw := range parseArray(e.object["expected_tool_use"]) {
		o := parseObject(raw)
		id := quote("call-" + strconv.Itoa(e.line) + "-" + strconv.Itoa(i+1))
		calls = append(calls, geminiCall(object{"id": id, "name": o["tool_name"], "args": o["tool_input"]}))
	}
	addParts(d, "model", calls)
	addParts(d, "model", geminiParts(e.object["reference"]))
	return nil
}

// geminiNames are the members of Gemini's parts that have another name in Python.
var geminiNames = map[string]string{
	"function_call": "functionCall", "function_response": "functionResponse", "inline_data": "inlineData",
	"file_data": "fileData", "executable_code": "executableCode", "code_execution_result": "codeExecutionResult",
	"thought_signature": "thoughtSignature", "video_metadata": "videoMetadata", "mime_type": "mimeType",
	"file_uri": "fileUri", "display_name": "displayName", "will_continue": "willContinue",
	"start_offset": "startOffset", "end_offset": "endOffset",
}

// geminiNamed returns a part with the API's names and without nulls, as it stands if it has neither, nil if nothing is
// left of it. What a tool is given and returns keeps its bytes.
func geminiNamed(raw []byte) []byte {
	members, changed := [][]byte{}, false
	for key, value := range rawjson.Members(raw, rawjson.Start(raw)) {
		name, _ := rawjson.Unquote(nil, key.Of(raw))
		old := value.Of(raw)
		if !has(old) {
			changed = true
			continue
		}
		renamed, written := geminiNames[string(name)], old
		if old[0] == '{' && string(name) != "args" && string(name) != "response" {
			written = geminiNamed(old)
		}
		label := key.Of(raw)
		if renamed != "" {
			label = quote(renamed)
		}
		changed = changed || renamed != "" || !bytes.Equal(old, written)
		members = append(members, fill("%:%", label, or(written, "{}")))
	}
	switch {
	case len(members) == 0:
		return nil
	case !changed:
		return raw
	}
	return inBraces(members)
}
