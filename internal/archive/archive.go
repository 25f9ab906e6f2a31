// Package archive is the file format in which sessions move between databases: NDJSON, one object a line.
//
//	{"export":{"version":1}}
//	{"tenant":{"policy":{…}}}                            the tenant's layer of its policy; only in a tenant's export
//	{"session":{"id":"a","format":"anthropic",…}}        a session's settings, then its messages, oldest first
//	{"message":{"session":"a","seq":1,"format":"anthropic","client_id":"m1","created_at":"…","body":{…}}}
//	{"end":{"session":"a","last_seq":1,"messages":1,"bytes":31,"sha256":"…"}}
//	{"manifest":{"sessions":1,"messages":1,"bytes":31,"sha256":"…"}}
//
// The body of a message is written as it was appended, byte for byte; if it has line breaks, body is a string that
// contains it. A message that was removed from the views also has removed_at and removed_seq, and one that was
// superseded also superseded_by. bytes counts bodies. The sha256 of an end covers the lines of its session, from
// {"session" to the line before the end; that of the manifest covers all lines before it from {"export" on; each line
// with its line feed. An archive does not depend on when or from which database it was made, so equal manifests mean
// equal sessions. A file may contain several archives one after the other.
//
// Start at Begin, which writes an archive, and at Scanner and Checker, which read one. It does no I/O except through
// its reader or writer.
package archive

import (
	"bytes"
	"regexp"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Version is the version of the format, in the first line.
const Version = 1

// Source is the name of archives among the sources of imports.
const Source = "varve"

// MediaType is the media type of an archive.
const MediaType = "application/x-ndjson"

// MaxLineBytes bounds a line: a message of session.MaxMessageBytes as a string, in which every byte may need another to
// escape it, and its other members.
const MaxLineBytes = 2*session.MaxMessageBytes + 1<<20

// HeadBytes is how much of a file Begins needs to see.
const HeadBytes = 64 << 10

// Kind is the kind of a line: the name of its only member.
type Kind string

// The kinds of lines, and one for any other line.
const (
	Unknown      Kind = ""
	ExportLine   Kind = "export"
	TenantLine   Kind = "tenant"
	SessionLine  Kind = "session"
	MessageLine  Kind = "message"
	EndLine      Kind = "end"
	ManifestLine Kind = "manifest"
)

// Total counts what an archive or a session in it holds.
type Total struct {
	Messages int64  `json:"messages"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
}

// Manifest is the last line of an archive.
type Manifest struct {
	Sessions int64 `json:"sessions"`
	Total
}

// End is the line after a session's messages.
type End struct {
	Session string `json:"session"`
	LastSeq int64  `json:"last_seq"` // of the session: a removal takes a seq without a message
	Total
	Uploads []Upload              `json:"uploads,omitempty"` // which the archive does not have
	Pins    []session.ArchivedPin `json:"pins,omitempty"`    // of callers
}

// Upload is an uploaded result of an exported session. An archive has its text, in a message, and not its bytes: they
// are read by its ref from where it was exported.
type Upload struct {
	Ref       string `json:"ref"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"` // in hexadecimal
}

// KindOf returns the kind of a line and the place of its value; Unknown if it is not a line of an archive.
func KindOf(line []byte) (Kind, rawjson.Span) {
	if rawjson.Check(line, rawjson.Limits{}) != nil {
		return Unknown, rawjson.Span{}
	}
	start := rawjson.Start(line)
	if line[start] != '{' {
		return Unknown, rawjson.Span{}
	}
	kind, at := Unknown, rawjson.Span{}
	members := 0
	for key, value := range rawjson.Members(line, start) {
		members++
		kind, at = Kind(line[key.Start+1:key.End-1]), value
	}
	switch kind {
	case ExportLine, TenantLine, SessionLine, MessageLine, EndLine, ManifestLine:
		if members == 1 && line[at.Start] == '{' {
			return kind, at
		}
	}
	return Unknown, rawjson.Span{}
}

// longMessage matches the beginning of a message that is longer than HeadBytes.
var longMessage = regexp.MustCompile(`^\s*\{\s*"message"\s*:\s*\{\s*"session"\s*:\s*"`)

// Begins reports whether a file that begins like head is an archive.
func Begins(head []byte) bool {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	kind, _ := KindOf(line)
	return kind != Unknown || longMessage.Match(line)
}
