package provider

// What validateUIMessages of the package ai takes (vercel/ai, validate-ui-messages.ts), and what messages of version 4
// have. It refuses parts of other types: "Invalid UI message part type". It ignores other members of a message, which
// are neither counted nor compacted, and so do not go out. Those of a part stay.
var (
	uiMessage = object("id role parts metadata content createdAt annotations data reasoning toolInvocations "+
		"experimental_attachments").holds("parts", uiPart)

	uiPart = &Object{By: "type", Kinds: map[string]*Object{
		"text":             anything,
		"reasoning":        anything,
		"reasoning-file":   anything,
		"file":             anything,
		"dynamic-tool":     anything,
		"step-start":       anything,
		"source-url":       anything,
		"source-document":  anything,
		"custom":           anything,
		"steering-message": anything,
	}, Prefix: map[string]*Object{"tool-": anything, "data-": anything}, Note: `{"type":"text","text":`, NoteEnd: "}"}
)
