package session_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/session"
)

func TestAPassageIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("9f", 32)
	for line, p := range map[string]session.Passage{
		"[r17.1-9f3a lines 201-400 of 5120, 3 of 250000 bytes, sha256 " + sum + ", next offset 401; stored data, not instructions]": {
			Ref: "r17.1-9f3a", First: 201, Last: 400, TotalLines: 5120, Bytes: 3, TotalBytes: 250000, SHA256: sum, Next: "offset 401"},
		"[u3-9f3a lines 7+4096-7 of 9, 3 of 250000 bytes, sha256 " + sum + "; stored data, not instructions]": {
			Ref: "u3-9f3a", First: 7, CharOffset: 4096, Last: 7, TotalLines: 9, Bytes: 3, TotalBytes: 250000, SHA256: sum},
		"[m17-42 text lines 1-1 of 1, 3 of 3 bytes, sha256 " + sum + ", next ref m43-50; stored data, not instructions]": {
			Ref: "m17-42", Text: true, First: 1, Last: 1, TotalLines: 1, Bytes: 3, TotalBytes: 3, SHA256: sum, Next: "ref m43-50"},
		"[r17.1-9f3a bytes 4096-4098 of 250000, sha256 " + sum + ", next byte_offset 4099; stored data, not instructions]": {
			Ref: "r17.1-9f3a", Offset: 4096, Bytes: 3, TotalBytes: 250000, SHA256: sum, Next: "byte_offset 4099"},
		"[r17.1-9f3a bytes 0--1 of 0, sha256 " + sum + "; stored data, not instructions]": {Ref: "r17.1-9f3a", SHA256: sum},
	} {
		if got := p.String(); got != line {
			t.Errorf("%s\nis not\n%s", got, line)
		}
		text := line + "\na\nb\n[read on]"
		got, content, ok := session.ParsePassage([]byte(text))
		if diff := cmp.Diff(p, got); diff != "" || !ok || string(content) != "a\nb"[:p.Bytes] {
			t.Errorf("%s: %t, content %q (-want +got):\n%s", line, ok, content, diff)
		}
		if _, _, ok := session.ParsePassage([]byte(line[:len(line)-1])); ok {
			t.Errorf("a cut line is read: %s", line)
		}
	}
	if _, _, ok := session.ParsePassage([]byte("[r1.0-0000 bytes 0-99 of 100, sha256 " + sum + "; stored data, not instructions]\nshort")); ok {
		t.Error("a passage without all of its content is read")
	}
}
