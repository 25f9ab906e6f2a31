package protocol

// LinePage is a page of the lines of a result or of messages.
type LinePage struct {
	Offset int64 `json:"offset" schema:"minimum: 1"` // the first line, counted from 1
	// how many characters of the first line come before the page
	CharOffset     int64  `json:"char_offset"`
	Limit          int64  `json:"limit" schema:"minimum: 1"`
	Content        string `json:"content"`          // numbered lines, in the form of `cat -n`
	NextOffset     *int64 `json:"next_offset"`      // the line to go on with; null at the end
	NextCharOffset int64  `json:"next_char_offset"` // the character of it to go on with
	// with `chars`, how many characters the line has, if its end is near
	LineChars  *int64 `json:"line_chars,omitempty"`
	TotalLines int64  `json:"total_lines"`
	TotalBytes int64  `json:"total_bytes"` // of what the lines are of
	// of the text, in hexadecimal, where it is not what was stored
	TextSHA256 string `json:"text_sha256,omitempty"`
	Truncated  bool   `json:"truncated"` // `max_bytes` ended the page
	// what is unusual about the page, for example that the offset is beyond the end
	Note string `json:"note,omitempty"`
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
	Pointer string `json:"pointer"`
	// object, array, string, number, boolean or null
	Type    string   `json:"type" schema:"enum: [object, array, string, number, boolean, 'null']"`
	Length  *int     `json:"length,omitempty"`          // of an object or an array
	Keys    []string `json:"keys,omitempty"`            // of an object, the first of them
	Offset  int64    `json:"offset"`                    // the byte of the result where the value begins
	Bytes   int      `json:"bytes" schema:"minimum: 1"` // of the value as it was written
	Content string   `json:"content"`                   // the value as it was written, or its beginning
	// the byte of the result where the rest of the value begins; null if `content` is all
	NextOffset *int64 `json:"next_offset"`
	TotalLines int64  `json:"total_lines"`
	TotalBytes int64  `json:"total_bytes"`
	Truncated  bool   `json:"truncated"`
}

// Matches is what a grep found. A match is a line; one longer than 64 KiB counts by pieces of this size.
type Matches struct {
	Groups []MatchGroup `json:"groups"`
	// lines that match; of lines over 64 KiB, pieces of this size
	Matches      int    `json:"matches"`
	Results      int    `json:"results"`               // how many results this call looked at
	ScannedBytes int64  `json:"scanned_bytes"`         // by this call
	TotalBytes   *int64 `json:"total_bytes,omitempty"` // of the result, if it is one
	TotalLines   *int64 `json:"total_lines,omitempty"` // of the result, if it is one
	SHA256       string `json:"sha256,omitempty"`      // of what was scanned, if it is one result
	Truncated    bool   `json:"truncated"`
	// max_matches, max_bytes or budget
	StoppedBy string `json:"stopped_by,omitempty" schema:"enum: [max_matches, max_bytes, budget]"`
	// continues exactly where this call stopped; null if all was scanned
	NextCursor *string `json:"next_cursor"`
	Note       string  `json:"note,omitempty"`
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
	Line    int64   `json:"line" schema:"minimum: 1"` // the first
	Matches []Match `json:"matches"`
	// lines with their numbers, a colon after that of a match and a hyphen after that of another line; long ones
	// are shortened around the match
	Content string `json:"content"`
}

// Match is the place of a match.
type Match struct {
	Line       int64 `json:"line" schema:"minimum: 1"`
	CharOffset int64 `json:"char_offset"` // characters of the line before the match
}

// Found is what a search found, the best first.
type Found struct {
	Hits         []Hit    `json:"hits"`
	Words        []string `json:"words"`         // that were searched for
	FirstSeq     int64    `json:"first_seq"`     // of the messages that were searched by this call
	LastSeq      int64    `json:"last_seq"`      // the newest of them
	ScannedBytes int64    `json:"scanned_bytes"` // by this call
	// there are more passages, or older messages that are not searched yet
	Truncated bool `json:"truncated"`
	// limit, max_bytes or budget
	StoppedBy  string  `json:"stopped_by,omitempty" schema:"enum: [limit, max_bytes, budget]"`
	NextCursor *string `json:"next_cursor"`
	Note       string  `json:"note,omitempty"`
}

// Hit is a passage that a search found. Reading Ref from line Line on shows it.
type Hit struct {
	Ref        string `json:"ref"` // reads the passage, from `line` on
	Line       int64  `json:"line"`
	CharOffset int64  `json:"char_offset"` // where to begin in a long line
	Seq        int64  `json:"seq"`
	Role       string `json:"role"`
	Part       int    `json:"part"`
	// text, reasoning, call or result
	Kind     string   `json:"kind" schema:"enum: [text, reasoning, call, result, image, file, opaque]"`
	Tool     string   `json:"tool,omitempty"`
	Words    []string `json:"words"` // those of the query that are in the passage
	Score    float64  `json:"score"`
	Snippet  string   `json:"snippet"`
	ReadBack string   `json:"read_back"` // the path that reads on from here
}
