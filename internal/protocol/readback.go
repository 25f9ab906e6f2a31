package protocol

// LinePage is a page of the lines of a result or of messages.
type LinePage struct {
	Offset         int64  `json:"offset"`      // the first line, counted from 1
	CharOffset     int64  `json:"char_offset"` // how many characters of this line come before the page
	Limit          int64  `json:"limit"`
	Content        string `json:"content"`
	NextOffset     *int64 `json:"next_offset"`          // the line to go on with; null at the end
	NextCharOffset int64  `json:"next_char_offset"`     // the character of it to go on with
	LineChars      *int64 `json:"line_chars,omitempty"` // of a window: how many characters the line has, if it is near
	TotalLines     int64  `json:"total_lines"`
	TotalBytes     int64  `json:"total_bytes"`
	TextSHA256     string `json:"text_sha256,omitempty"` // of the text, where it is not what was stored
	Truncated      bool   `json:"truncated"`             // max_bytes ended the page
	Note           string `json:"note,omitempty"`        // what is unusual about the page, and how to go on
}

// ByteRange is a piece of a result. Content is base64 if the piece is not UTF-8.
type ByteRange struct {
	Offset     int64  `json:"offset"`
	Bytes      int    `json:"bytes"`
	Content    string `json:"content"`
	Encoding   string `json:"encoding"` // utf-8 or base64
	NextOffset *int64 `json:"next_offset"`
	TotalLines int64  `json:"total_lines"`
	TotalBytes int64  `json:"total_bytes"`
	Truncated  bool   `json:"truncated"`
	Note       string `json:"note,omitempty"`
}

// JSONValue is a value in a result that is JSON. Content is its text as it was written, from the byte Offset of the
// result on.
type JSONValue struct {
	Pointer    string   `json:"pointer"`
	Type       string   `json:"type"` // object, array, string, number, boolean or null
	Length     *int     `json:"length,omitempty"`
	Keys       []string `json:"keys,omitempty"` // of an object, the first of them
	Offset     int64    `json:"offset"`
	Bytes      int      `json:"bytes"`
	Content    string   `json:"content"`
	NextOffset *int64   `json:"next_offset"` // the byte of the result where the value continues; null if Content is all
	TotalLines int64    `json:"total_lines"`
	TotalBytes int64    `json:"total_bytes"`
	Truncated  bool     `json:"truncated"`
}

// Matches is what a grep found. A match is a line; one longer than 64 KiB counts by pieces of this size.
type Matches struct {
	Groups       []MatchGroup `json:"groups"`
	Matches      int          `json:"matches"`
	Results      int          `json:"results"`       // how many results were looked at
	ScannedBytes int64        `json:"scanned_bytes"` // by this call
	TotalBytes   *int64       `json:"total_bytes,omitempty"`
	TotalLines   *int64       `json:"total_lines,omitempty"`
	SHA256       string       `json:"sha256,omitempty"` // these three of the result, if it is one
	Truncated    bool         `json:"truncated"`
	StoppedBy    string       `json:"stopped_by,omitempty"` // max_matches, max_bytes or budget
	NextCursor   *string      `json:"next_cursor"`
	Note         string       `json:"note,omitempty"`
}

// Found returns the refs of the results with matches, each once: the groups of a result follow one another.
func (m *Matches) Found() (refs []string) {
	for i := range m.Groups {
		if ref := m.Groups[i].Ref; i == 0 || ref != m.Groups[i-1].Ref {
			refs = append(refs, ref)
		}
	}
	return refs
}

// MatchGroup is a run of lines with matches among them: a number and a colon before a match, a number and a hyphen
// before another line. Lines are shortened around the match.
type MatchGroup struct {
	Ref     string  `json:"ref"`
	Line    int64   `json:"line"` // the first
	Matches []Match `json:"matches"`
	Content string  `json:"content"`
}

// Match is the place of a match.
type Match struct {
	Line       int64 `json:"line"`
	CharOffset int64 `json:"char_offset"`
}

// Found is what a search found, the best first.
type Found struct {
	Hits         []Hit    `json:"hits"`
	Words        []string `json:"words"`         // that were searched for
	FirstSeq     int64    `json:"first_seq"`     // of the messages that were searched by this call
	LastSeq      int64    `json:"last_seq"`      // the newest of them
	ScannedBytes int64    `json:"scanned_bytes"` // by this call
	Truncated    bool     `json:"truncated"`
	StoppedBy    string   `json:"stopped_by,omitempty"` // limit, max_bytes or budget
	NextCursor   *string  `json:"next_cursor"`
	Note         string   `json:"note,omitempty"`
}

// Hit is a passage that a search found. Reading Ref from line Line on shows it.
type Hit struct {
	Ref        string   `json:"ref"`
	Line       int64    `json:"line"`
	CharOffset int64    `json:"char_offset"`
	Seq        int64    `json:"seq"`
	Role       string   `json:"role"`
	Part       int      `json:"part"`
	Kind       string   `json:"kind"` // text, reasoning, call or result
	Tool       string   `json:"tool,omitempty"`
	Words      []string `json:"words"` // of the query that are in the passage
	Score      float64  `json:"score"`
	Snippet    string   `json:"snippet"`
	ReadBack   string   `json:"read_back"` // the path that reads on from here
}
