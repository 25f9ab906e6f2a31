package main

import (
	"encoding/json"
	"fmt"

	"github.com/varve-dev/varve/internal/session"
)

// structs do with messages what a client does who has a struct for them.
type structs struct {
	read  func() error // decodes every message
	write func() error // encodes every message that was decoded before
	pass  func() error // decodes every message and encodes it again
}

// clients are the structs of each format. Members that conversations have and that are not here cost encoding/json less
// than they cost Varve, which keeps them.
var clients = map[session.Format]func(bodies [][]byte) (structs, error){
	session.OpenAIChat:      inStructs[chatStruct],
	session.Anthropic:       inStructs[anthropicStruct],
	session.OpenAIResponses: inStructs[itemStruct],
	session.Gemini:          inStructs[contentStruct],
	session.AISDK:           inStructs[uiStruct],
}

func inStructs[T any](bodies [][]byte) (s structs, err error) {
	messages := make([]T, len(bodies))
	for i, body := range bodies {
		if err := json.Unmarshal(body, &messages[i]); err != nil {
			return s, fmt.Errorf("message %d: %w", i, err)
		}
	}
	s.read = func() error {
		for _, body := range bodies {
			var m T
			if err := json.Unmarshal(body, &m); err != nil {
				return err
			}
		}
		return nil
	}
	s.write = func() error {
		for i := range messages {
			if _, err := json.Marshal(&messages[i]); err != nil {
				return err
			}
		}
		return nil
	}
	s.pass = func() error {
		for _, body := range bodies {
			var m T
			if err := json.Unmarshal(body, &m); err != nil {
				return err
			}
			if _, err := json.Marshal(&m); err != nil {
				return err
			}
		}
		return nil
	}
	return s, nil
}

// textOr is a text, or a list of what says more.
type textOr[T any] struct {
	text string
	list []T
}

func (t *textOr[T]) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &t.text)
	}
	return json.Unmarshal(data, &t.list)
}

func (t *textOr[T]) MarshalJSON() ([]byte, error) {
	if t.list != nil {
		return json.Marshal(t.list)
	}
	return json.Marshal(t.text)
}

type (
	chatStruct struct {
		Role       string             `json:"role"`
		Content    *textOr[chatBlock] `json:"content"`
		Name       string             `json:"name,omitempty"`
		ToolCalls  []chatCall         `json:"tool_calls,omitempty"`
		ToolCallID string             `json:"tool_call_id,omitempty"`
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatBlock struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		ImageURL *struct {
			URL    string `json:"url"`
			Detail string `json:"detail,omitempty"`
		} `json:"image_url,omitempty"`
	}
)

type (
	anthropicStruct struct {
		Role    string                  `json:"role"`
		Content *textOr[anthropicBlock] `json:"content"`
	}
	anthropicBlock struct {
		Type      string                  `json:"type"`
		Text      string                  `json:"text,omitempty"`
		Thinking  string                  `json:"thinking,omitempty"`
		Signature string                  `json:"signature,omitempty"`
		Data      string                  `json:"data,omitempty"`
		ID        string                  `json:"id,omitempty"`
		Name      string                  `json:"name,omitempty"`
		Input     json.RawMessage         `json:"input,omitempty"`
		ToolUseID string                  `json:"tool_use_id,omitempty"`
		Content   *textOr[anthropicBlock] `json:"content,omitempty"`
		IsError   bool                    `json:"is_error,omitempty"`
		Source    *struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type,omitempty"`
			Data      string `json:"data,omitempty"`
			URL       string `json:"url,omitempty"`
		} `json:"source,omitempty"`
	}
)

type (
	itemStruct struct {
		Type      string             `json:"type,omitempty"`
		ID        string             `json:"id,omitempty"`
		Role      string             `json:"role,omitempty"`
		Status    string             `json:"status,omitempty"`
		Content   *textOr[itemBlock] `json:"content,omitempty"`
		CallID    string             `json:"call_id,omitempty"`
		Name      string             `json:"name,omitempty"`
		Arguments string             `json:"arguments,omitempty"`
		Input     string             `json:"input,omitempty"`
		Output    *textOr[itemBlock] `json:"output,omitempty"`
		Summary   []itemBlock        `json:"summary,omitempty"`
		Encrypted string             `json:"encrypted_content,omitempty"`
	}
	itemBlock struct {
		Type        string          `json:"type"`
		Text        string          `json:"text,omitempty"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
		ImageURL    string          `json:"image_url,omitempty"`
	}
)

type (
	contentStruct struct {
		Role  string       `json:"role,omitempty"`
		Parts []partStruct `json:"parts"`
	}
	partStruct struct {
		Text             string        `json:"text,omitempty"`
		Thought          bool          `json:"thought,omitempty"`
		ThoughtSignature string        `json:"thoughtSignature,omitempty"`
		FunctionCall     *partFunction `json:"functionCall,omitempty"`
		FunctionResponse *partFunction `json:"functionResponse,omitempty"`
		InlineData       *struct {
			MIMEType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"inlineData,omitempty"`
	}
	partFunction struct {
		ID       string          `json:"id,omitempty"`
		Name     string          `json:"name"`
		Args     json.RawMessage `json:"args,omitempty"`
		Response map[string]any  `json:"response,omitempty"`
	}
)

type (
	uiStruct struct {
		ID    string   `json:"id"`
		Role  string   `json:"role"`
		Parts []uiPart `json:"parts"`
	}
	uiPart struct {
		Type       string          `json:"type"`
		Text       *string         `json:"text,omitempty"`
		State      string          `json:"state,omitempty"`
		ToolCallID string          `json:"toolCallId,omitempty"`
		ToolName   string          `json:"toolName,omitempty"`
		Input      json.RawMessage `json:"input,omitempty"`
		Output     any             `json:"output,omitempty"`
		ErrorText  string          `json:"errorText,omitempty"`
		MediaType  string          `json:"mediaType,omitempty"`
		URL        string          `json:"url,omitempty"`
	}
)
