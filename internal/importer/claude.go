package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// One line is one record; records of type user and assistant are conversation, and prompts that were typed while Claude
// worked, in the order of the file (time stamps go backwards).
//
//   - parentUuid is a tree: of the branches between which a person went back, the one that ends last is read. Calls of
//     one message, and their results, branch too, and belong together.
//   - A file that was attached is a document of the user.
//   - A prompt that was typed while Claude worked is an attachment (queued_command) where Claude got it. Before there
//     were such attachments, the file has it only as it was put into the queue and taken out (queue-operation).
//   - A file is one conversation even when its sessionId changes: a resume continues the same conversation.
//   - Records of a subagent (isSidechain) are another conversation for each agent. Versions that write a subagent's
//     records into another file repeat them here as progress (agent_progress), each with the agent's record in it: they
//     are read unless the file has the agent's own records.
//   - A compaction does not cut the log: its summary is a user message like any other (isCompactSummary), and so are
//     commands and their output and what Claude Code writes in the user's name (isMeta): the model saw them.
//   - Assistant records that no model wrote (model "<synthetic>", isApiErrorMessage) are skipped.
//   - toolUseResult and the other copies of what a message holds are not read.
var claudeCode = source{
	name:   ClaudeCode,
	title:  "Claude Code's JSON lines",
	detect: marked("type=user|assistant uuid|sessionId message.content"),
	likely: marked("type=file-history-snapshot|progress|queue-operation|summary|pr-link"),
	into:   Anthropic,
	tree:   &tree{id: "uuid", parent: "parentUuid", spoke: claudeSpoke, ties: claudeTies},
	infix:  "-agent-",
	open: func(*draft) record {
		return (&claudeLog{agents: map[string]string{}, own: map[string]bool{}, said: map[string]int{},
			taken: map[int]*takenPrompt{}}).record
	},
}

// claudeSpoke reports whether a record is one of the main conversation.
func claudeSpoke(o object) bool {
	return o.fits("type=user|assistant|attachment") && !o.is("isSidechain")
}

// claudeTies returns the API's id of an assistant message, whose blocks are records each, and the ids of calls.
func claudeTies(o object) (ids []string) {
	if id := o.text("message.id"); id != "" {
		ids = append(ids, id)
	}
	for block := range objects(o.at("message.content")) {
		switch block.text("type") {
		case "tool_use":
			ids = append(ids, block.text("id"))
		case "tool_result":
			ids = append(ids, block.text("tool_use_id"))
		}
	}
	return ids
}

// claudeLog is a file being read.
type claudeLog struct {
	agents  map[string]string // uuid of a subagent's record to the agent
	own     map[string]bool   // agents that have records of their own
	unnamed int               // agents without an id
	said    map[string]int    // what the user wrote, and how often
	queue   [][]byte          // prompts that wait, as literals

	taken map[int]*takenPrompt // out of the queue, by their lines
}

// record adds the message of a record to the conversation of its agent.
func (c *claudeLog) record(d *draft, e entry) error {
	d.branch = c.agent(e.object)
	switch kind := e.text("type"); kind {
	case "":
		return errNoType
	case "user", "assistant":
		return c.message(d, e, kind)
	case "progress":
		return c.progress(d, e)
	case "attachment":
		return c.attachment(d, e)
	case "queue-operation":
		return c.queued(d, e)
	default:
		return skipped(kind)
	}
}

// progress adds what a subagent said, if only its progress has it.
func (c *claudeLog) progress(d *draft, e entry) error {
	data := parseObject(e.object["data"])
	said := parseObject(data["message"])
	kind, agent := said.text("type"), data.text("agentId")
	named := strings.TrimSpace("progress " + data.text("type"))
	switch {
	case data.text("type") != "agent_progress" || agent == "" || kind != "user" && kind != "assistant":
		return skipped(named)
	case !d.atEnd:
		return d.postpone(e)
	case c.own[agent]:
		return skipped(named + " (copy)")
	}
	d.branch = agent
	return c.message(d, entry{object: said, raw: e.raw, line: e.line}, kind)
}

// message adds the message of a record.
func (c *claudeLog) message(d *draft, e entry, kind string) error {
	m := parseObject(e.object["message"])
	switch {
	case m == nil:
		return fmt.Errorf("a record of type %s without a message", kind)
	case m.text("role") != kind:
		return fmt.Errorf("a record of type %s holds a message of role %q", kind, m.text("role"))
	}
	if err := rawjson.Check(e.object["message"], rawjson.Limits{}); err != nil {
		return err
	}
	content, err := parseContent(m["content"])
	switch {
	case err != nil:
		return err
	case kind == "assistant" && (e.is("isApiErrorMessage") || m.text("model") == "<synthetic>"):
		return skipped("assistant (synthetic)")
	case copied(d, e):
		return skipped(kind + " (copy)")
	}
	if kind == "user" {
		c.hear(content)
	}
	d.addTurn(kind, m.text("id"), content...)
	return nil
}

// hear remembers what the user wrote.
func (c *claudeLog) hear(content [][]byte) {
	for _, raw := range content {
		c.said[cmp.Or(stringValue(raw), parseObject(raw).text("text"))]++
	}
}

// attachment adds a prompt that was typed while Claude worked, or a file that was attached. Others are reminders.
func (c *claudeLog) attachment(d *draft, e entry) error {
	a := parseObject(e.object["attachment"])
	kind := "attachment " + a.text("type")
	var content [][]byte
	var err error
	switch a.text("type") {
	case "queued_command":
		if content, err = parseContent(a["prompt"]); string(a["prompt"]) == `""` {
			content = nil
		}
	case "file":
		content = claudeFile(a)
	}
	switch {
	case err != nil:
		return err
	case content == nil:
		return skipped(kind)
	case copied(d, e):
		return skipped(kind + " (copy)")
	}
	c.hear(content)
	d.addTurn("user", "", content...)
	return nil
}

// claudeFile returns a file as Claude was given it, nil if the record does not have its content.
func claudeFile(a object) [][]byte {
	const image = `{"type":"image","source":{"type":"base64","media_type":%,"data":%}}`
	file := parseObject(a.at("content.file"))
	switch {
	case isString(file["content"]):
		return [][]byte{textDocument(file["content"], or(nonEmpty(a["filename"]), `"file"`))}
	case isString(file["base64"]) && a.text("content.type") == "image":
		return [][]byte{fill(image, or(nonEmpty(file["type"]), `"image/png"`), file["base64"])}
	}
	return nil
}

// queued follows the queue of prompts. One that was taken out and is nowhere else in the file, Claude got there: that
// is known at the end.
func (c *claudeLog) queued(d *draft, e entry) error {
	operation, prompt := e.text("operation"), nonEmpty(e.object["content"])
	kind := skipped("queue-operation " + operation)
	if p := c.taken[e.line]; p != nil {
		if text := stringValue(p.text); c.said[text] > 0 {
			c.said[text]--
			return kind
		}
		p.place.body = func() []byte { return message("user", p.text) }
		return nil
	}
	switch operation {
	case "enqueue":
		c.queue = append(c.queue, prompt)
	case "popAll": // back into the line that the person edits
		c.queue = nil
	case "dequeue", "remove":
		i := slices.IndexFunc(c.queue, func(q []byte) bool { return prompt == nil || bytes.Equal(q, prompt) })
		if i < 0 || c.queue[i] == nil {
			break
		}
		c.taken[e.line] = &takenPrompt{c.queue[i], d.place(func() []byte { return nil })}
		c.queue = slices.Delete(c.queue, i, i+1)
		return d.postpone(e)
	}
	return kind
}

// takenPrompt is a prompt that was taken out of the queue, and where.
type takenPrompt struct {
	text  []byte // a literal
	place *slot
}

// copied reports whether the file had the record before: a resume may copy records. The uuid alone does not tell: files
// whose ids were redacted repeat it.
func copied(d *draft, e entry) bool {
	id := e.text("uuid")
	return id != "" && !d.first([]byte(id), e.object["message"], e.object["parentUuid"], e.object["timestamp"])
}

// agent names the subagent that a record belongs to, "" for the main conversation. Old records have no agentId: they
// belong to the agent of the record that they follow, and one that follows no agent's record begins another agent.
func (c *claudeLog) agent(o object) string {
	if !o.is("isSidechain") {
		return ""
	}
	name := o.text("agentId")
	if parent := o.text("parentUuid"); name == "" && parent != "" {
		name = c.agents[parent]
	}
	if name == "" {
		c.unnamed++
		name = unnamed + strconv.Itoa(c.unnamed)
	}
	if id := o.text("uuid"); id != "" {
		c.agents[id] = name
	}
	c.own[name] = true
	return name
}
