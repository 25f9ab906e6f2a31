package session

// WindowSource is the source of a session's context window.
type WindowSource string

// The sources of a window: its caller, the registry of models, or DefaultWindowTokens.
const (
	WindowOfRequest WindowSource = "request"
	WindowOfModel   WindowSource = "model"
	WindowOfDefault WindowSource = "default"
)
