package importer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// claude reads Claude Code's JSON lines. One line is one record; only records of type user and assistant are
// conversation, in the order of the file (time stamps go backwards, and parentUuid is a tree).
//
//   - A file is one conversation even when its sessionId changes: a resume goes on with the same conversation.
//   - Records of a subagent (isSidechain) are a conversation of their own for each agent.
//   - A compaction does not cut the log: its summary is a user message like any other (isCompactSummary), and so are
//     commands and their output and what Claude Code says in the user's name (isMeta): the model saw them.
//   - Assistant records that no model wrote (model "<synthetic>", isApiErrorMessage) are skipped.
//   - toolUseResult and the other copies of what a message holds are not read.
type claude struct {
	file    *File
	chains  []*chain
	byAgent map[string]*chain
	seen    map[[32]byte]bool // digests of uuid, message, parent and time
	agents  map[string]string // uuid of a subagent's record to the agent
	unnamed int               // agents without an id
}

func (f *File) readClaude(id string, data []byte) {
	c := &claude{file: f, byAgent: map[string]*chain{}, seen: map[[32]byte]bool{}, agents: map[string]string{}}
	for n, line := range lines(data) {
		f.Report.Lines++
		c.line(n, line)
	}
	for _, ch := range c.chains {
		name := id
		if ch.agent != "" && len(c.chains) > 1 {
			name = c.free(suffixed(id, "-agent-"+strings.TrimPrefix(ch.agent, unnamed)))
		}
		f.Conversations = append(f.Conversations, Conversation{ID: name, Format: session.Anthropic, Messages: ch.messages()})
	}
}

// line reads the records of one line. A line that is not JSON from end to end is rejected as a whole.
func (c *claude) line(n int, line []byte) {
	found, err := values(line)
	if err != nil {
		c.file.reject(n, line, "not JSON: %s", err)
		return
	}
	if len(found) > 1 {
		c.file.note(n, "%d JSON values run together on one line were read one by one", len(found))
		c.file.Report.Lines += len(found) - 1
	}
	for _, raw := range found {
		r, reason := parseRecord(raw)
		if reason != "" {
			c.file.reject(n, raw, "%s", reason)
			continue
		}
		agent := c.agent(r)
		if kind := c.skip(r); kind != "" {
			c.file.Report.Skipped[kind]++
			continue
		}
		c.file.Report.Imported++
		c.chain(agent).add(n, r)
	}
}

// record is what is read of a line.
type record struct {
	object
	kind    string
	message object
	content content
}

// parseRecord reads a line's value, and says what is wrong with it.
func parseRecord(raw []byte) (r record, reason string) {
	r.object = parseObject(raw)
	if r.object == nil {
		return r, "not a JSON object"
	}
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

// skip says as what a record is counted that is no part of the conversation, or "".
func (c *claude) skip(r record) string {
	switch {
	case r.message == nil:
		return r.kind
	case r.kind == "assistant" && (r.is("isApiErrorMessage") || r.message.text("model") == "<synthetic>"):
		return "assistant (synthetic)"
	}
	// A resume may copy records. The uuid alone does not tell: files whose ids were redacted repeat it.
	if id := r.text("uuid"); id != "" {
		sum := sha256.Sum256(bytes.Join([][]byte{[]byte(id), r.object["message"], r.object["parentUuid"], r.object["timestamp"]}, []byte{'\n'}))
		if c.seen[sum] {
			return r.kind + " (copy)"
		}
		c.seen[sum] = true
	}
	return ""
}

// free returns the name, or the name with a number where another conversation of the file has it already.
func (c *claude) free(name string) string {
	free := name
	for n := 2; slices.ContainsFunc(c.file.Conversations, func(other Conversation) bool { return other.ID == free }); n++ {
		free = suffixed(name, "-"+strconv.Itoa(n))
	}
	return free
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
		ch = &chain{agent: agent, waiting: map[string][]*turn{}}
		c.byAgent[agent] = ch
		c.chains = append(c.chains, ch)
	}
	return ch
}
