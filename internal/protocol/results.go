package protocol

import "time"

// Result describes a persisted tool result without its content.
type Result struct {
	Ref       string    `json:"ref"`
	Seq       int64     `json:"seq"`
	Part      int       `json:"part"`
	Tool      string    `json:"tool"`
	CallID    string    `json:"call_id"`
	Category  string    `json:"category"`
	MediaType string    `json:"media_type"`
	Bytes     int64     `json:"bytes"`
	Lines     int64     `json:"lines"`
	Tokens    int64     `json:"tokens"`
	SHA256    string    `json:"sha256"` // of its bytes, in hexadecimal
	CreatedAt time.Time `json:"created_at"`
}

// ResultPage is some lines of a result, numbered.
type ResultPage struct {
	Result
	Offset     int64  `json:"offset"`
	Limit      int64  `json:"limit"`
	Content    string `json:"content"`
	NextOffset *int64 `json:"next_offset"`
}

// MessagesPage is some lines of the text of messages, numbered.
type MessagesPage struct {
	Ref        string  `json:"ref"`
	NextRef    *string `json:"next_ref"` // of the messages after these that one answer has no room for
	Messages   int     `json:"messages"`
	Tokens     int64   `json:"tokens"`
	Lines      int64   `json:"lines"`  // of the text
	Bytes      int64   `json:"bytes"`  // of the messages as they were appended
	SHA256     string  `json:"sha256"` // of these bytes, in hexadecimal
	Offset     int64   `json:"offset"`
	Limit      int64   `json:"limit"`
	Content    string  `json:"content"`
	NextOffset *int64  `json:"next_offset"`
}
