package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A conversation of a ChatGPT export is a tree of messages (mapping): an answer that was generated again, or a message
// that was edited, begins another branch. The branch that ends in current_node is read, as OpenAI Chat's messages.
//
//   - A message to a tool (recipient) is a call. What the tool writes next is its result: several messages of a tool
//     are one result.
//   - Thoughts belong to the message that they precede.
//   - Images and files are not in the export's JSON: a text in brackets names each, and a note says so.
//   - Messages of other branches are counted, and a note says where they branch off.
var chatGPT = source{
	name:   ChatGPT,
	title:  "ChatGPT exports",
	detect: marked("mapping current_node|create_time|title", "0.mapping 0.current_node|0.create_time|0.title"),
	into:   OpenAIChat,
	read:   readChatGPT,
}

func readChatGPT(f *File, id string, data []byte) error {
	for e := range f.records(data) {
		tree := parseObject(e.object["mapping"])
		if tree == nil {
			f.count(e, errors.New(`no object "mapping"`))
			continue
		}
		d := f.newDraft(e.object)
		c := &chatGPTConversation{tree: map[string]object{}, calls: map[string][][]byte{}}
		for name, raw := range tree {
			c.tree[name] = parseObject(raw)
		}
		d.read = c.message
		leaf := c.leaf(f, e.text("current_node"))
		if leaf == "" {
			if f.wanted == "" && len(tree) > 0 {
				f.count(e, errors.New("no message is the last one: they follow each other in a circle"))
			}
			continue
		}
		for i, name := range c.branch(f, leaf) {
			d.record(c.node(name, i+1))
		}
		c.think(d)
		c.others(f)
		d.finish(id)
	}
	return nil
}

// chatGPTConversation is a conversation being read.
type chatGPTConversation struct {
	tree     map[string]object
	path     []string
	thoughts [][]byte
	calls    map[string][][]byte // ids of calls without a result, by their tool
	called   string              // the tool of the last call
	last     string              // tool that wrote the last message, "" if it was no tool
	result   *chatMessage        // what that tool wrote
}

// leaf returns the node that the conversation ends with: of a branch that was asked for, the newest one, "" if that is
// in another conversation.
func (c *chatGPTConversation) leaf(f *File, current string) string {
	if f.wanted == "" {
		return cmp.Or(current, c.lastLeaf(""))
	}
	for name := range c.tree {
		if strings.HasPrefix(name, f.wanted) {
			f.found = true
			return c.lastLeaf(name)
		}
	}
	return ""
}

// branch returns the nodes from the root to the current one: without it, to the end of each last child. It notes a
// circle, which has no root.
func (c *chatGPTConversation) branch(f *File, current string) []string {
	if c.tree[current] == nil {
		current = c.lastLeaf("")
	}
	seen := map[string]bool{}
	for name := current; c.tree[name] != nil && !seen[name]; name = c.tree[name].text("parent") {
		seen[name] = true
		c.path = append(c.path, name)
		if parent := c.tree[name].text("parent"); seen[parent] {
			f.note(1, "the messages follow each other in a circle (parent): none of them is the first")
		}
	}
	slices.Reverse(c.path)
	return c.path
}

// lastLeaf returns the newest message that no other follows, of those at or behind a node if it is named.
func (c *chatGPTConversation) lastLeaf(root string) string {
	last := ""
	for name, node := range c.tree {
		if len(parseArray(node["children"])) > 0 || root != "" && !c.under(name, root) {
			continue
		}
		at, newest := moment(node.at("message.create_time")), moment(c.tree[last].at("message.create_time"))
		if last == "" || at.After(newest) || at.Equal(newest) && name < last {
			last = name
		}
	}
	return last
}

// under reports whether a node is another or follows it.
func (c *chatGPTConversation) under(name, root string) bool {
	for range c.tree {
		if name == root || c.tree[name] == nil {
			break
		}
		name = c.tree[name].text("parent")
	}
	return name == root
}

// node returns a node as the entry of its place.
func (c *chatGPTConversation) node(name string, line int) entry {
	o := parseObject(c.tree[name]["message"])
	raw := c.tree[name]["message"]
	if o == nil {
		o, raw = object{}, []byte("null")
	}
	o["node"] = quote(name)
	return entry{object: o, raw: raw, line: line}
}

// others counts the messages that are not on the branch, and notes where they branch off.
func (c *chatGPTConversation) others(f *File) {
	joins, beside := map[string]string{}, map[string]int{} // where a node joins the branch, how many join there
	tops := map[string][]string{}                          // first nodes of the branches that join there
	for _, name := range c.path {
		joins[name] = name
	}
	for name, node := range c.tree {
		at := c.join(name, joins)
		if at != name && node.has("message") {
			f.count(entry{}, skipped("message of another branch"))
			beside[at]++
			if node.text("parent") == at {
				tops[at] = append(tops[at], name)
			}
		}
	}
	for i, name := range c.path {
		if beside[name] > 0 {
			slices.Sort(tops[name])
			f.note(i+1, "%d messages of other branches (edited or generated again) follow here: they are imported "+
				"with branch %s", beside[name], strings.Join(tops[name], " or "))
		}
	}
	if beside[""] > 0 {
		f.note(1, "%d messages are not connected with the current one", beside[""])
	}
}

// join returns the first node above a node that is known to join the branch, and remembers it for those between them.
// It returns "" if there is none.
func (c *chatGPTConversation) join(name string, joins map[string]string) string {
	var passed []string
	at, known := joins[name]
	for !known && c.tree[name] != nil {
		joins[name] = "" // should the parents be a circle
		passed = append(passed, name)
		name = c.tree[name].text("parent")
		at, known = joins[name]
	}
	for _, below := range passed {
		joins[below] = at
	}
	return at
}

// message adds a message of the branch.
func (c *chatGPTConversation) message(d *draft, e entry) error {
	d.at = moment(e.object["create_time"])
	role, kind := e.text("author.role"), e.text("content.content_type")
	switch {
	case e.raw == nil, !e.has("content") && role == "":
		return skipped("node without a message")
	case role == "":
		return errNoRole
	case kind == "reasoning_recap":
		return skipped(kind)
	case kind == "thoughts":
		for o := range objects(e.at("content.thoughts")) {
			c.thoughts = append(c.thoughts, o.first("content", "summary"))
		}
		c.thoughts = append(c.thoughts, parseArray(e.at("content.parts"))...)
		return nil
	}
	m := &chatMessage{role: role, blocks: c.content(d, e)}
	for o := range objects(e.at("metadata.attachments")) {
		if !strings.HasPrefix(o.text("mimeType")+o.text("mime_type"), "image/") {
			m.addText(d.absentFile(o.text("name")))
		}
	}
	tool := e.text("recipient")
	if role != "tool" {
		c.last = ""
	}
	switch {
	case role == "tool":
		return c.answer(d, e, m)
	case role == "assistant" && tool != "" && tool != "all":
		return c.call(d, e, tool, m)
	case role == "assistant":
		m.think(c.thoughts...)
		c.thoughts = nil
	}
	return d.addChat(m)
}

// think adds thoughts that no message followed.
func (c *chatGPTConversation) think(d *draft) {
	m := &chatMessage{role: "assistant"}
	m.think(c.thoughts...)
	if m.reasoning != nil {
		d.add(m.body())
	}
}

// call adds a message to a tool. Its text is the arguments if it is a JSON object, else their input.
func (c *chatGPTConversation) call(d *draft, e entry, tool string, said *chatMessage) error {
	input := concat(texts(said.blocks)...)
	if parseObject(unfolded(input)) == nil {
		input = fill(`{"input":%}`, input)
	}
	m := &chatMessage{role: "assistant"}
	m.think(c.thoughts...)
	c.thoughts = nil
	id := quote("call-" + strconv.Itoa(e.line))
	m.addCall(id, quote(tool), input)
	c.called = toolOf(tool)
	c.calls[c.called] = append(c.calls[c.called], id)
	return d.addChat(m)
}

// answer adds what a tool wrote: to the call of the tool that is open, else to the result that it just wrote, else as a
// result without a call.
func (c *chatGPTConversation) answer(d *draft, e entry, m *chatMessage) error {
	tool := toolOf(e.text("author.name"))
	if tool == "" {
		tool = c.called
	}
	open := c.calls[tool]
	if c.result != nil && c.last == tool && len(open) == 0 {
		c.result.blocks = append(c.result.blocks, m.blocks...)
		return nil
	}
	id := quote("result-" + strconv.Itoa(e.line))
	if last := len(open) - 1; last >= 0 {
		id, c.calls[tool] = open[last], open[:last]
	}
	r := &chatMessage{role: "tool", answers: id, blocks: m.blocks}
	c.result, c.last = r, tool
	d.place(func() []byte {
		r.content = blocksOrText(textBlocks(r.blocks))
		return r.body()
	})
	return nil
}

// toolOf returns a tool's name without that of its function: a recipient or an author may leave it out.
func toolOf(name string) string {
	tool, _, _ := strings.Cut(name, ".")
	return tool
}

// content returns the content of a message as blocks.
func (c *chatGPTConversation) content(d *draft, e entry) [][]byte {
	m := chatMessage{}
	o := parseObject(e.object["content"])
	switch kind := o.text("content_type"); kind {
	case "text", "multimodal_text":
		for _, part := range parseArray(o["parts"]) {
			chatGPTPart(d, &m, part)
		}
	case "user_editable_context":
		m.addTexts(o["user_profile"], o["user_instructions"])
	case "model_editable_context":
		m.addTexts(o["model_set_context"])
	case "tether_browsing_display":
		m.addTexts(o["summary"], o["result"])
	case "tether_quote":
		m.addTexts(o["title"], o["url"], o["text"])
	case "system_error":
		m.addTexts(o["name"], o["text"])
	default:
		text := o.first("text", "content", "result", "output_str")
		m.addTexts(text)
		for _, part := range parseArray(o["parts"]) {
			chatGPTPart(d, &m, part)
		}
		if m.blocks == nil && kind != "code" && kind != "execution_output" {
			d.leavePart(kind)
		}
	}
	return m.blocks
}

// chatGPTPart adds a part of a message. Of a spoken part only the words are in the export.
func chatGPTPart(d *draft, m *chatMessage, part []byte) {
	o := parseObject(part)
	if o == nil {
		m.addTexts(part)
		return
	}
	kind := o.text("content_type")
	asset := o.first("asset_pointer", "audio_asset_pointer.asset_pointer")
	switch {
	case kind == "audio_transcription", asset == nil && isString(o["text"]):
		m.addTexts(o["text"])
	case asset != nil:
		kind = strings.TrimSuffix(kind, "_asset_pointer")
		m.addText(quote(fmt.Sprintf("[%s %s]", kind, stringValue(asset))))
		d.note("the %s %s is not in the export: a text stands in its place", kind, asset)
	default:
		d.leavePart(kind)
	}
}
