package provider

// What validateUIMessages of the package ai takes (vercel/ai, validate-ui-messages.ts), and what messages of version 4
// have. It refuses parts of other types: "Invalid UI message part type". It ignores other members of a message and of a
// part, which are neither counted nor compacted, and so do not go out. A part that is Opaque is counted as a whole, and
// stays as it is.
var (
	uiMessage = object("id role parts metadata content createdAt annotations data reasoning toolInvocations "+
		"experimental_attachments").holds("parts", uiPart).
		free("id metadata createdAt annotations data content reasoning toolInvocations")

	uiPart = &Object{By: "type", Kinds: map[string]*Object{
		"text":      object("type text state providerMetadata citations"),
		"reasoning": object("type text state id providerMetadata reasoning details"),
		"file": object("type mediaType url filename providerReference providerMetadata mimeType data").
			free("url data"),
		"dynamic-tool":     uiTool,
		"tool-invocation":  anything, // of version 4
		"reasoning-file":   anything,
		"step-start":       anything,
		"source-url":       anything,
		"source-document":  anything,
		"custom":           anything,
		"steering-message": anything,
	}, Prefix: map[string]*Object{"tool-": uiTool, "data-": anything}, Note: `{"type":"text","text":`, NoteEnd: "}"}

	uiTool = object("type toolCallId state input output errorText toolName callProviderMetadata " +
		"resultProviderMetadata providerExecuted rawInput inputEncoding preliminary approval title dynamic " +
		"toolMetadata")
)
