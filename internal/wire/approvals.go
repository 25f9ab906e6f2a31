package wire

import "github.com/varve-dev/varve/internal/session"

// approvals pairs the requests of approval of MCP calls in Responses with what the user said of them. One may wait.
type approvals map[string]bool // by id: whether the request waits

// alone adds an item, and reports whether it says something of a request that is not before it, or has its answer.
func (a approvals) alone(item []byte) bool {
	switch stringMember(item, "type") {
	case "mcp_approval_request":
		a[stringMember(item, "id")] = true
	case approvalResponse:
		id := stringMember(item, "approval_request_id")
		waits := a[id]
		a[id] = false
		return !waits
	}
	return false
}

// approvalsAnswer checks V-R10.
func (c *checker) approvalsAnswer() {
	asked := approvals{}
	for i, item := range c.bodies {
		if asked.alone(item) {
			c.report(i, "an approval answers no request before it, or one that is answered")
		}
	}
}

// settleMCPApprovals turns approvals without a request into what the user says.
func (r *repairer) settleMCPApprovals(list []Message) {
	if r.target != session.OpenAIResponses {
		return
	}
	asked := approvals{}
	for i := range list {
		n := &list[i]
		if !r.keepsFormat(n) || len(n.Blocks) != 1 || n.Blocks[0].Kind != Opaque || !asked.alone(n.Raw) {
			continue
		}
		said := "denied"
		if string(valueOf(n.Raw, "approve")) == "true" {
			said = "approved"
		}
		n.makeText(&n.Blocks[0],
			note("The user has %s a tool call that is not in this conversation, or was settled", said))
		n.Extra = nil
		r.repaired("V-R10", "approval_as_note", n,
			"an approval without a request, or the second one of it, is a note")
	}
}
