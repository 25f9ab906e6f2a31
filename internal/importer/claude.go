package importer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// claude reads Claude Code's JSON lines. One line is one record; only records of type user and assistant are
// conversation, in the order of the file (time stamps go backwards, and parentUuid is a tree).
//
//   - A file is one conversation even when its sessionId changes: a resume continues the same conversation.
//   - Records of a subagent (isSidechain) are another conversation for each agent.
//   - A compaction does not cut the log: its summary is a user message like any other (isCompactSummary), and so are
//     commands and their output and what Claude Code writes in the user's name (isMeta): the model saw them.
//   - Assistant records that no model wrote (model "<synthetic>", isApiErrorMessage) are skipped.
//   - toolUseResult and the other copies of what a message holds are not read.
type claude struct {
	file    *File
	order   []string // of agents, "" for the main conversation
	byAgent map[string]*chain
	seen    map[[32]byte]bool // digests of uuid, message, parent and time
	agents  map[string]string // uuid of a subagent's record to the agent
	unnamed int               // agents without an id
}

// ClaudeCode is the JSON lines of Claude Code.
const ClaudeCode Source = "claude-code"

var claudeCode = source{
	name:   ClaudeCode,
	title:  "Claude Code's JSON lines",
	detect: func(s sample) bool { return claudeRecord(s.object) },
	likely: func(s sample) bool { return claudeTypes[s.object.text("type")] },
	read:   readClaude,
}

// claudeTypes are the records of Claude Code besides messages.
var claudeTypes = map[string]bool{
	"file-history-snapshot": true, "progress": true, "queue-operation": true,
	"summary": true, "pr-link": true,
}

// claudeRecord recognises a message of Claude Code: others use the same types, but not all of the members.
func claudeRecord(o object) bool {
	if kind := o.text("type"); kind != "user" && kind != "assistant" {
		return false
	}
	return (o.has("uuid") || o.has("sessionId")) && parseObject(o["message"]).has("content")
}

func readClaude(f *File, id string, data []byte) error {
	c := &claude{file: f, byAgent: map[string]*chain{}, seen: map[[32]byte]bool{}, agents: map[string]string{}}
	for e := range f.entries(data) {
		c.record(e)
	}
	for _, agent := range c.order {
		name := id
		if agent != "" && len(c.order) > 1 {
			name = suffixed(id, "-agent-"+strings.TrimPrefix(agent, unnamed))
		}
		f.add(name, session.Anthropic, c.byAgent[agent].messages())
	}
	return nil
}

func (c *claude) record(e entry) {
	r, reason := parseRecord(e.object)
	if reason != "" {
		c.file.reject(e.line, e.raw, "%s", reason)
		return
	}
	agent := c.agent(r)
	if kind := c.skip(r); kind != "" {
		c.file.skip(kind)
		return
	}
	c.file.Report.Imported++
	c.chain(agent).add(e.line, r)
}

// record is what is read of a line.
type record struct {
	object
	kind    string
	message object
	content content
}

// parseRecord reads a line's value and returns the reason if it cannot be read.
func parseRecord(o object) (r record, reason string) {
	r.object = o
	r.kind = r.text("type")
	switch r.kind {
	case "":
		return r, "no record type"
	case "user", "assistant":
	default:
		return r, ""
	}
	if r.message = parseObject(r.object["message"]); r.message == nil {
		return r, fmt.Sprintf("a record of type %s without a message", r.kind)
	}
	if role := r.message.text("role"); role != r.kind {
		return r, fmt.Sprintf("a record of type %s holds a message of role %q", r.kind, role)
	}
	if err := rawjson.Check(r.object["message"], rawjson.Limits{}); err != nil {
		return r, err.Error()
	}
	var ok bool
	if r.content, ok = parseContent(r.message["content"]); !ok {
		return r, "the message's content is neither a string nor a list of blocks"
	}
	return r, ""
}

// skip returns the kind under which a record is counted that is no part of the conversation, "" for one that is.
func (c *claude) skip(r record) string {
	switch {
	case r.message == nil:
		return r.kind
	case r.kind == "assistant" && (r.is("isApiErrorMessage") || r.message.text("model") == "<synthetic>"):
		return "assistant (synthetic)"
	}
	// A resume may copy records. The uuid alone does not tell: files whose ids were redacted repeat it.
	if id := r.text("uuid"); id != "" {
		sum := sha256.Sum256(
			bytes.Join(
				[][]byte{[]byte(id), r.object["message"], r.object["parentUuid"], r.object["timestamp"]},
				[]byte{'\n'},
			),
		)
		if c.seen[sum] {
			return r.kind + " (copy)"
		}
		c.seen[sum] = true
	}
	return ""
}

// agent names the subagent that a record belongs to, "" for the main conversation. Old records have no agentId: they
// belong to the agent of the record that they follow, and one that follows none of an agent's begins another.
func (c *claude) agent(r record) string {
	if !r.is("isSidechain") {
		return ""
	}
	name := r.text("agentId")
	if parent := r.text("parentUuid"); name == "" && parent != "" {
		name = c.agents[parent]
	}
	if name == "" {
		c.unnamed++
		name = unnamed + strconv.Itoa(c.unnamed)
	}
	if id := r.text("uuid"); id != "" {
		c.agents[id] = name
	}
	return name
}

// unnamed begins the names of agents that have no id: no id does.
const unnamed = "\x00"

func (c *claude) chain(agent string) *chain {
	ch := c.byAgent[agent]
	if ch == nil {
		ch = &chain{}
		c.byAgent[agent] = ch
		c.order = append(c.order, agent)
	}
	return ch
}
