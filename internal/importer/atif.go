package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A trajectory of the Agent Trajectory Interchange Format (harbor) is a list of steps, which become OpenAI Chat's
// messages: a step of the agent its message with the calls, and one for each result of its observation.
//
//   - A result that names no call answers the first open call of its step. Without an open call it is a user message:
//     the agent has no tools and reads what the environment says.
//   - A trajectory of a subagent inside the file is another conversation.
//   - An image is a path beside the file: unless it is a URL, a text in brackets names it and a note says so.
var atif = source{
	name:   ATIF,
	title:  "ATIF trajectories",
	detect: recogniseATIF,
	into:   OpenAIChat,
	infix:  "-",
	record: atifStep,
	read:   readATIF,
}

func recogniseATIF(s sample) bool {
	const version = "ATIF-"
	first := parseObject(s.members["0"])
	return s.object.has("steps") && strings.HasPrefix(s.object.text("schema_version"), version) ||
		first.has("steps") && strings.HasPrefix(first.text("schema_version"), version)
}

func readATIF(f *File, id string, data []byte) error {
	for e := range f.records(data) {
		f.trajectory(id, e)
	}
	return nil
}

// trajectory appends the conversation of a trajectory and those of the trajectories in it.
func (f *File) trajectory(id string, e entry) {
	steps := parseArray(e.object["steps"])
	if steps == nil {
		f.count(e, errors.New(`no list "steps"`))
		return
	}
	f.readRun(id, e.object, steps)
	if e.has("continued_trajectory_ref") {
		f.note(len(steps), "the trajectory goes on in another file: %s", e.text("continued_trajectory_ref"))
	}
	for i, raw := range parseArray(e.object["subagent_trajectories"]) {
		if inner, ok := f.entry(i+1, raw); ok {
			name := cmp.Or(inner.text("trajectory_id"), inner.text("session_id"), strconv.Itoa(i+1))
			f.trajectory(suffixed(id, f.kind.infix+name), inner)
		}
	}
}

var atifRoles = map[string]string{"user": "user", "agent": "assistant", "system": "system"}

func atifStep(d *draft, e entry) error {
	m := chatMessage{role: atifRoles[e.text("source")], reasoning: nonEmpty(e.object["reasoning_content"])}
	if m.role == "" {
		return fmt.Errorf(`"source" is %s: user, agent or system is needed`, or(e.object["source"], "missing"))
	}
	m.blocks = atifContent(d, e.object["message"])
	var open [][]byte
	for i, raw := range parseArray(e.object["tool_calls"]) {
		o := parseObject(raw)
		id := or(nonEmpty(o["tool_call_id"]), quote(fmt.Sprintf("call-%d-%d", e.line, i+1)))
		m.addCall(id, o["function_name"], o["arguments"])
		open = append(open, id)
	}
	err := d.addChat(&m)
	results := parseArray(e.at("observation.results"))
	var images [][]byte
	for _, raw := range results {
		var more [][]byte
		open, more = atifResult(d, parseObject(raw), open)
		images = append(images, more...)
	}
	if images != nil {
		d.add(message("user", list(images)))
		d.note("the images of results follow them in a message of the user: OpenAI Chat has no others there")
	}
	if len(results) > 0 {
		return nil
	}
	return err
}

// atifResult adds a result, and returns the calls that are still open, and the images: a result can have only texts.
func atifResult(d *draft, o object, open [][]byte) (left, images [][]byte) {
	blocks := atifContent(d, o["content"])
	for ref := range objects(o["subagent_trajectory_ref"]) {
		name := cmp.Or(ref.text("trajectory_path"), ref.text("trajectory_id"), ref.text("session_id"))
		d.note("the call was answered by a subagent, whose trajectory is %q", name)
	}
	id := nonEmpty(o["source_call_id"])
	if id == nil && len(open) > 0 {
		id = open[0]
	}
	if id == nil {
		if blocks != nil {
			d.add(message("user", blocksOrText(blocks)))
		}
		return open, nil
	}
	d.add(resultMessage(id, or(blocksOrText(textBlocks(blocks)), `""`)))
	for _, block := range blocks {
		if parseObject(block).text("type") != "text" {
			images = append(images, block)
		}
	}
	answered := func(other []byte) bool { return bytes.Equal(other, id) }
	if i := slices.IndexFunc(open, answered); i >= 0 {
		open = slices.Delete(open, i, i+1)
	}
	return open, images
}

// atifContent returns a content, which is a text or a list of texts and images, as blocks of OpenAI Chat.
func atifContent(d *draft, raw []byte) [][]byte {
	m := chatMessage{}
	if nonEmpty(raw) != nil {
		m.addText(raw)
	}
	for o := range objects(raw) {
		path, kind := o.at("source.path"), o.text("type")
		switch {
		case kind == "text":
			m.addText(o["text"])
		case kind == "image" && linked(path):
			m.addImages(path)
		case kind == "image":
			m.addText(quote("[image " + stringValue(path) + "]"))
			d.note("the image %s is not in the file: a text stands in its place", path)
		default:
			d.leavePart(kind)
		}
	}
	return m.blocks
}

// linked reports whether a string is a URL that an image can be read from, not a path.
func linked(url []byte) bool {
	text := stringValue(url)
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "data:")
}
