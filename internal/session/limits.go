package session

// How large things may be. Each is enforced with its own error code (docs/errors.md).
const (
	MaxBodyBytes       = 32 << 20 // a request body, decompressed
	MaxMessageBytes    = 8 << 20
	MaxBatchMessages   = 1000
	MaxSessionMessages = 1_000_000
	MaxTailBytes       = 512 << 20 // of messages that no checkpoint covers yet: a view must fit into memory
	MaxJSONDepth       = 64
	MaxJSONNodes       = 100_000 // in one message
	MaxNumberBytes     = 64      // of one JSON number; some readers are quadratic in it
	MaxIDBytes         = 255
	MaxClientIDBytes   = 128
	MaxCallIDBytes     = 64 << 10
	MaxMetadataKeys    = 16
	MaxMetadataKey     = 64
	MaxMetadataValue   = 512
	MaxPage            = 100
	MaxMessagePage     = 1000
	MaxIdempotencyKey  = 255

	// DefaultWindowTokens is the context window of a session that names none.
	DefaultWindowTokens = 128_000
)

// WindowSource is the source of a session's context window.
type WindowSource string

// The sources of a window: its caller, the registry of models, or DefaultWindowTokens.
const (
	WindowOfRequest WindowSource = "request"
	WindowOfModel   WindowSource = "model"
	WindowOfDefault WindowSource = "default"
)
