// Command go is an agent with the Go client: go run . "Read README.md." "And now?"
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/varve-dev/varve/client"
)

const readFile = `{"type":"function","function":{"name":"read_file","description":"Reads a file",
	"parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}`

// completion is an answer of Chat Completions.
type completion struct {
	Choices []struct{ Message json.RawMessage }
	Usage   struct {
		Prompt  int64 `json:"prompt_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

// message is what of the model's message is looked at.
type message struct {
	Content   string
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func main() {
	varve, err := client.Open(cmp.Or(os.Getenv("VARVE_URL"), "http://localhost:8080"), os.Getenv("VARVE_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	tools, err := varve.Tools(ctx, "openai-chat")
	if err != nil {
		log.Fatal(err)
	}
	id := cmp.Or(os.Getenv("SESSION"), fmt.Sprint("go-", time.Now().Unix()))
	session := varve.Session(id, &client.Settings{Format: "openai-chat", Model: "gpt-4o"})
	for _, question := range os.Args[1:] {
		answer, err := turn(ctx, session, append(tools, json.RawMessage(readFile)), question)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer)
	}
}

// turn asks the model until it calls no tool any more, and returns what it says.
func turn(ctx context.Context, session *client.Session, tools []json.RawMessage, question string) (string, error) {
	next := client.Batch{Messages: []any{map[string]string{"role": "user", "content": question}}}
	for {
		view, err := session.Step(ctx, next, nil)
		if err != nil {
			return "", err
		}
		answer, err := ask(view.Messages, tools)
		if err != nil {
			return "", err
		}
		var said message
		if err := json.Unmarshal(answer.Choices[0].Message, &said); err != nil {
			return "", err
		}
		cached := answer.Usage.Details.Cached
		next = client.Batch{Messages: []any{answer.Choices[0].Message}, Usage: &client.Usage{
			InputTokens: answer.Usage.Prompt - cached, CacheReadTokens: cached,
		}}
		for _, call := range said.ToolCalls {
			results, err := run(ctx, session, call.ID, call.Function.Name, call.Function.Arguments)
			if err != nil {
				return "", err
			}
			next.Messages = append(next.Messages, results...)
		}
		if said.ToolCalls == nil {
			_, err := session.Append(ctx, next)
			return said.Content, err
		}
	}
}

// run runs a call and returns the messages with its result.
func run(ctx context.Context, session *client.Session, id, name, arguments string) (results []any, err error) {
	if name == "read_file" {
		var of struct{ Path string }
		if err := json.Unmarshal([]byte(arguments), &of); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(of.Path)
		if err != nil {
			content = []byte(err.Error())
		}
		return []any{map[string]string{"role": "tool", "tool_call_id": id, "content": string(content)}}, nil
	}
	answer, err := session.Call(ctx, name, arguments, id)
	for _, m := range answer.Messages {
		results = append(results, m)
	}
	return results, err
}

// ask sends a request to the model.
func ask(messages, tools []json.RawMessage) (answer completion, err error) {
	body, err := json.Marshal(map[string]any{"model": "gpt-4o", "messages": messages, "tools": tools})
	if err != nil {
		return answer, err
	}
	at := cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1") + "/chat/completions"
	request, err := http.NewRequest(http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the model's provider: %s %s", response.Status, text)
	}
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}
