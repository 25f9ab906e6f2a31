package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// One line is one record; only records of type user and assistant are conversation, in the order of the file (time
// stamps go backwards, and parentUuid is a tree).
//
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
	infix:  "-agent-",
	open: func(*draft) record {
		return (&claudeLog{agents: map[string]string{}, own: map[string]bool{}}).record
	},
}

// claudeLog is a file being read.
type claudeLog struct {
	agents  map[string]string // uuid of a subagent's record to the agent
	own     map[string]bool   // agents that have records of their own
	unnamed int               // agents without an id
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
	d.addTurn(kind, m.text("id"), content...)
	return nil
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
