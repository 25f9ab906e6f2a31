package importer

import (
	"cmp"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An export is an array of chats. The history of a chat has its messages by their ids, each with the one before it, and
// the one that the chat ends with.
//
//   - What a model thought, and the tools that it called, stand in its text as <details>; they become reasoning, calls
//     and results.
//   - Files are not in the export.
var openWebUI = source{
	name:  OpenWebUI,
	title: "Open WebUI's exports",
	detect: marked(
		"0.chat.history.messages", "chat.history.messages", "0.chat.messages[] 0.user_id",
		"history.messages history.currentId",
	),
	into:   OpenAIChat,
	tree:   &tree{id: "id", parent: "parentId", spoke: func(o object) bool { return o.has("role") }},
	read:   readOpenWebUI,
	record: openWebUIMessage,
}

func readOpenWebUI(f *File, id string, data []byte) error {
	for e := range f.records(data) {
		chat := e.object.object("chat")
		messages := parseObject(chat.at("history.messages"))
		var entries []entry
		for i, name := range openWebUIOrder(messages) {
			entries = append(entries, entry{object: parseObject(messages[name]), raw: messages[name], line: i + 1})
		}
		if messages == nil {
			entries = slices.Collect(f.elements(parseArray(chat["messages"])))
		}
		d := f.newDraft(e.object)
		if prompt := nonEmpty(chat.first("params.system", "system")); prompt != nil {
			d.line = 1
			d.add(message("system", prompt))
		}
		d.records(slices.Values(f.branch(entries, chat.text("history.currentId"))))
		d.finish(id)
	}
	return nil
}

// openWebUIOrder returns the ids of messages, each behind the one before it.
func openWebUIOrder(messages object) []string {
	parents, depths := map[string]string{}, map[string]int{}
	times := map[string]time.Time{}
	for name, raw := range messages {
		o := parseObject(raw)
		parents[name] = o.text("parentId")
		times[name] = moment(o["timestamp"])
	}
	for name := range parents {
		for at := name; messages[at] != nil && depths[name] <= len(parents); at = parents[at] {
			depths[name]++
		}
	}
	return slices.SortedFunc(maps.Keys(parents), func(a, b string) int {
		return cmp.Or(cmp.Compare(depths[a], depths[b]), times[a].Compare(times[b]), cmp.Compare(a, b))
	})
}

// details is a part of a text that the interface folds.
var details = regexp.MustCompile(`(?s)<details type="(reasoning|tool_calls)"([^>]*)>\n?` +
	`(?:<summary>.*?</summary>\n?)?(.*?)\n?</details>\n?`)

var attribute = regexp.MustCompile(`(\w+)="([^"]*)"`)

func openWebUIMessage(d *draft, e entry) error {
	d.at = moment(e.object["timestamp"])
	role := e.text("role")
	if role == "" {
		return errNoRole
	}
	m := &chatMessage{role: role}
	for file := range objects(e.object["files"]) {
		if url := file.text("url"); file.text("type") == "image" && strings.HasPrefix(url, "data:") {
			m.addImages(file["url"])
			continue
		}
		m.addText(d.absentFile(cmp.Or(file.text("name"), file.text("file.filename"), file.text("type"))))
	}
	m.blocks = append(m.blocks, parseArray(e.object["content"])...)
	text := e.text("content")
	if role != "assistant" || !details.MatchString(text) {
		m.addTexts(e.object["content"])
		return d.addChat(m)
	}
	return d.addFolded(m, text)
}

// addFolded adds a text of the model with what is folded in it: a message up to each call, and its result.
func (d *draft) addFolded(m *chatMessage, text string) error {
	end := 0
	for _, at := range details.FindAllStringSubmatchIndex(text, -1) {
		m.addTexts(quote(strings.TrimSpace(text[end:at[0]])))
		end = at[1]
		if text[at[2]:at[3]] == "reasoning" {
			thought := strings.ReplaceAll("\n"+html.UnescapeString(text[at[6]:at[7]]), "\n> ", "\n")
			m.think(quote(strings.TrimSpace(thought)))
			continue
		}
		call := object{}
		for _, pair := range attribute.FindAllStringSubmatch(text[at[4]:at[5]], -1) {
			call[pair[1]] = unfolded(quote(html.UnescapeString(pair[2])))
		}
		m.addCall(call["id"], call["name"], plainText(call["arguments"]))
		d.add(m.body(), resultMessage(call["id"], inString(plainText(call["result"]))))
		m = &chatMessage{role: m.role}
	}
	m.addTexts(quote(strings.TrimSpace(text[end:])))
	if m.body() == nil {
		return nil
	}
	return d.addChat(m)
}

// plainText returns a text that was written as JSON in a string.
func plainText(raw []byte) []byte {
	if inner := stringValue(raw); len(inner) > 1 && inner[0] == '"' && validText([]byte(inner)) {
		return []byte(inner)
	}
	return raw
}
