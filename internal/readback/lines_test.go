package readback_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/readback"
)

// page reads a page, which must be there.
func page(t *testing.T, of *persist.Content, want readback.LinesWanted) *protocol.LinePage {
	t.Helper()
	got, err := readback.Lines(t.Context(), of, want)
	if err != nil {
		t.Fatalf("%+v: %v", want, err)
	}
	return got
}

func TestAPageOfLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       readback.LinesWanted
		content    string
		next, char int64
	}{
		{"an empty text has no lines", "", readback.LinesWanted{}, "", 0, 0},
		{"a line without an end", "a", readback.LinesWanted{}, "     1\ta", 0, 0},
		{"a line with an end is one line", "a\n", readback.LinesWanted{}, "     1\ta\n", 0, 0},
		{"an empty line is a line", "\n\nb", readback.LinesWanted{}, "     1\t\n     2\t\n     3\tb", 0, 0},
		{"the limit ends the page", "a\nb\nc\n", readback.LinesWanted{Limit: 2}, "     1\ta\n     2\tb\n", 3, 0},
		{"the offset begins it", "a\nb\nc\n", readback.LinesWanted{Offset: 2}, "     2\tb\n     3\tc\n", 0, 0},
		{"carriage returns stay", "a\r\nb", readback.LinesWanted{Limit: 1}, "     1\ta\r\n", 2, 0},
		{"without numbers", "a\nb", readback.LinesWanted{Plain: true}, "a\nb", 0, 0},
		{"a window of a line", "äöü\nb", readback.LinesWanted{Chars: 2}, "     1\täö", 1, 2},
		{"a window inside a line", "äöü\nb", readback.LinesWanted{CharOffset: 1, Chars: 1, Plain: true}, "ö", 1, 2},
		{"a window to the end has the line feed", "äöü\nb", readback.LinesWanted{CharOffset: 1, Chars: 2, Plain: true}, "öü\n", 2, 0},
		{"a character offset goes on with the next lines", "abc\nd\n", readback.LinesWanted{CharOffset: 2, Plain: true}, "c\nd\n", 0, 0},
		{"a line that has no room waits for the next page", strings.Repeat("a", 40) + "\n" + strings.Repeat("b", 40), readback.LinesWanted{MaxBytes: 64, Plain: true},
			strings.Repeat("a", 40) + "\n", 2, 0},
		{"a long line is cut between characters", strings.Repeat("€", 40), readback.LinesWanted{MaxBytes: 64, Plain: true}, strings.Repeat("€", 21), 1, 21},
	} {
		got := page(t, persist.ContentOf([]byte(test.text)), test.want)
		next := int64(0)
		if got.NextOffset != nil {
			next = *got.NextOffset
		}
		if got.Content != test.content || next != test.next || got.NextCharOffset != test.char {
			t.Errorf("%s: %q, next %d.%d; want %q, %d.%d", test.name, got.Content, next, got.NextCharOffset, test.content, test.next, test.char)
		}
	}
	if got := page(t, persist.ContentOf([]byte(strings.Repeat("a\n", 300))), readback.LinesWanted{}); *got.NextOffset != 201 {
		t.Errorf("by default a page ends before line %d", *got.NextOffset)
	}
	got := page(t, persist.ContentOf([]byte(strings.Repeat("a", 50_000))), readback.LinesWanted{Plain: true})
	if len(got.Content) != 32<<10 || *got.NextOffset != 1 || got.NextCharOffset != 32<<10 {
		t.Errorf("by default a page has %d bytes, next %d.%d", len(got.Content), *got.NextOffset, got.NextCharOffset)
	}
}

func TestWhatIsBeyondTheEndIsSaid(t *testing.T) {
	t.Parallel()
	of := persist.ContentOf([]byte("abc\nd\n"))
	if got := page(t, of, readback.LinesWanted{Offset: 3}); got.Content != "" || got.NextOffset != nil || !strings.Contains(got.Note, "beyond the end: there are 2 lines") {
		t.Errorf("%+v", got)
	}
	if got := page(t, of, readback.LinesWanted{CharOffset: 9}); !strings.Contains(got.Note, "line 1, which has 3 characters") {
		t.Errorf("%+v", got)
	}
	if got := page(t, of, readback.LinesWanted{CharOffset: 3}); got.Note != "" || got.Content != "     1\t\n     2\td\n" {
		t.Errorf("%+v", got)
	}
	if got := page(t, persist.ContentOf(nil), readback.LinesWanted{Offset: 2}); got.Note == "" {
		t.Errorf("%+v", got)
	}
	if got, err := readback.Bytes(t.Context(), of, readback.BytesWanted{Offset: 6}); err != nil || !strings.Contains(got.Note, "there are 6 bytes") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPagesJoinedAreTheText reads random texts with random limits.
func TestPagesJoinedAreTheText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		text := randomText(r)
		of := persist.ContentOf(text)
		want := readback.LinesWanted{Plain: true, MaxBytes: 64 + r.IntN(1<<(6+r.IntN(10))), Limit: 1 + r.Int64N(50)}
		if r.IntN(3) == 0 {
			want.Chars = 100 + r.Int64N(5000)
		}
		var read strings.Builder
		for {
			got := page(t, of, want)
			if len(got.Content) > want.MaxBytes || got.TotalBytes != int64(len(text)) || got.TotalLines != of.Lines() {
				t.Fatalf("%+v of %d bytes", got, len(text))
			}
			read.WriteString(got.Content)
			if got.NextOffset == nil {
				break
			}
			if *got.NextOffset == want.Offset && got.NextCharOffset <= want.CharOffset {
				t.Fatalf("no progress: %+v", got)
			}
			want.Offset, want.CharOffset = *got.NextOffset, got.NextCharOffset
		}
		if read.String() != string(text) {
			t.Fatalf("%+v: the pages of %d bytes are others", want, len(text))
		}
	}
}

// randomText returns a text that may have long lines, empty ones, and characters of all lengths.
func randomText(r *rand.Rand) []byte {
	var text bytes.Buffer
	for range r.IntN(40) {
		switch r.IntN(8) {
		case 0:
			text.WriteString("\n")
		case 1:
			text.WriteString(strings.Repeat("aé€😀 ", r.IntN(1<<r.IntN(15))) + "\n")
		default:
			text.WriteString(strings.Repeat("wörd ", r.IntN(30)) + fmt.Sprint(r.IntN(1000)) + "\n")
		}
	}
	if r.IntN(2) == 0 {
		text.WriteString("the end")
	}
	return text.Bytes()
}

func TestRangesOfBytesJoinedAreTheText(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		text := randomText(r)
		of := persist.ContentOf(text)
		want := readback.BytesWanted{MaxBytes: 80 + r.IntN(100_000)}
		var read strings.Builder
		for {
			got, err := readback.Bytes(t.Context(), of, want)
			if err != nil || got.Encoding != "utf-8" || got.Bytes != len(got.Content) || len(got.Content) > want.MaxBytes {
				t.Fatalf("%v, %+v", err, got)
			}
			read.WriteString(got.Content)
			if got.NextOffset == nil {
				break
			}
			want.Offset = *got.NextOffset
		}
		if read.String() != string(text) {
			t.Fatalf("%+v: the ranges of %d bytes are others", want, len(text))
		}
	}
}

func TestBytesThatAreNoTextAreBase64(t *testing.T) {
	t.Parallel()
	of := persist.ContentOf([]byte("ok \xff\xfe\x80\x80\x80 ok"))
	got, err := readback.Bytes(t.Context(), of, readback.BytesWanted{Offset: 3, Bytes: 2})
	if err != nil || got.Encoding != "base64" || got.Content != "//4=" || got.Offset != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	inside, err := readback.Bytes(t.Context(), persist.ContentOf([]byte("a€b")), readback.BytesWanted{Offset: 2, Bytes: 2})
	if err != nil || inside.Content != "€" || inside.Offset != 1 || *inside.NextOffset != 4 {
		t.Errorf("%+v, %v", inside, err)
	}
}

func TestNumbersThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	of := persist.ContentOf([]byte("a"))
	for name, want := range map[string]readback.LinesWanted{
		"offset": {Offset: -1}, "limit": {Limit: readback.MaxLines + 1}, "char_offset": {CharOffset: -1}, "chars": {Chars: -5}, "max_bytes": {MaxBytes: readback.MaxBytes + 1},
	} {
		if _, err := readback.Lines(t.Context(), of, want); err == nil || !strings.HasPrefix(err.Error(), name+": must be") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readback.Bytes(t.Context(), of, readback.BytesWanted{Offset: -1 << 63}); err == nil {
		t.Error("a negative offset is read")
	}
}
