package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// saidInBlocks returns what the blocks of Anthropic's messages are, one after the other.
func saidInBlocks(messages []sentItem) (all []spoken) {
	for _, m := range messages {
		var blocks []struct {
			Type, Text, ID string
			Input, Content json.RawMessage
			ToolUseID      string `json:"tool_use_id"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			all = append(all, spoken{m.Role, "", string(m.Content)})
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				all = append(all, spoken{"call", b.ID, string(b.Input)})
			case "tool_result":
				all = append(all, spoken{"result", b.ToolUseID, string(b.Content)})
			default:
				all = append(all, spoken{m.Role, "", b.Text})
			}
		}
	}
	return all
}

// streamMessage answers as Anthropic does, with the tools as Claude names them.
func streamMessage(w http.ResponseWriter, id, name, argument, text string, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind, data string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, data)
	}
	send("message_start", fmt.Sprintf(`,"message":{"id":"msg_%s","type":"message","role":"assistant",`+
		`"model":"claude-sonnet-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"output_tokens":1}}`, id, tokens))
	block, delta, why := `{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text), "end_turn"
	if name != "" {
		switch name {
		case "read_file":
			name, argument = "Read", strings.Replace(argument, `"path"`, `"file_path"`, 1)
		default:
			name = "mcp__varve__" + name
		}
		block = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%s","name":%q,"input":{}}`, id, name)
		delta, why = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, argument), "tool_use"
	}
	send("content_block_start", `,"index":0,"content_block":`+block)
	send("content_block_delta", `,"index":0,"delta":`+delta)
	send("content_block_stop", `,"index":0`)
	send("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":9}`, why))
	send("message_stop", "")
}
