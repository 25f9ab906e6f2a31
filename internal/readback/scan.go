package readback

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/varve-dev/varve/internal/persist"
)

// A text is scanned by segments: lines, and of a line that is longer than maxSegment pieces of this size. A segment
// with a match is one match. A literal is found wherever it begins, a regular expression only inside a segment.
const maxSegment = 64 << 10

// place is where a segment begins.
type place struct {
	at   int64 // byte
	line int64 // from 1
	char int64 // of the line; 0 except in pieces of a line
}

// beginning is the place of the first segment.
var beginning = place{line: 1}

// match is a segment that matches, and where in it the match is.
type match struct {
	place
	char int64 // of the line, where the match begins
	from int64 // byte
}

// budget bounds the work of a call.
type budget struct {
	deadline time.Time
	bytes    int64 // that may still be scanned
	scanned  int64
}

// scan looks for a pattern in one content after another.
type scan struct {
	*pattern
	*budget
	next    place // the segment to go on with
	wanted  int   // how many matches are still wanted
	found   []match
	stopped string // why the scan ended before the content did
}

// The reasons why a scan stops.
const (
	byMatches = "max_matches"
	byBytes   = "max_bytes"
	byBudget  = "budget"
)

// run scans a content from s.next on.
func (s *scan) run(ctx context.Context, of *persist.Content) error {
	first := of.At(s.next.at)
	skip := s.next.at - of.Index()[first].At
	last := len(of.Index()) - 1
	var rest []byte
	for text, err := range chunksAhead(ctx, of, first) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		text = text[min(skip, int64(len(text))):]
		skip = 0
		if len(rest) > 0 {
			text = append(rest[:len(rest):len(rest)], text...)
		}
		end := len(text)
		if first < last {
			end = s.wholeSegments(text)
		}
		first++
		if s.block(text, end); s.stopped != "" {
			return nil
		}
		rest = text[end:]
	}
	return ctx.Err()
}

// chunksAhead returns the chunks of a content from one on. The next ones are read while the last one is scanned.
func chunksAhead(ctx context.Context, of *persist.Content, first int) iter.Seq2[[]byte, error] {
	if len(of.Index())-first <= 2 {
		return of.Scan(ctx, first)
	}
	return func(yield func([]byte, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		type read struct {
			text []byte
			err  error
		}
		reads := make(chan read, chunksHeld)
		go func() {
			defer close(reads)
			for text, err := range of.Scan(ctx, first) {
				select {
				case reads <- read{text, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
		for r := range reads {
			if !yield(r.text, r.err) {
				return
			}
		}
	}
}

// chunksHeld is how many chunks wait to be scanned.
const chunksHeld = 16

// wholeSegments returns how many bytes of a block are whole segments, and so much more text is there that a literal
// that begins in the last of them ends in the block.
func (s *scan) wholeSegments(text []byte) int {
	end := bytes.LastIndexByte(text, '\n') + 1
	for len(text)-end > maxSegment+maxPattern {
		end = segmentEnd(text, end)
	}
	return end
}

// segmentEnd returns where the segment ends that starts at start.
func segmentEnd(text []byte, start int) int {
	rest := text[start:]
	if end := bytes.IndexByte(rest[:min(len(rest), maxSegment)], '\n') + 1; end > 0 {
		return start + end
	}
	return start + len(wholeChars(rest, maxSegment))
}

// block scans the segments of a block, which end at end.
func (s *scan) block(text []byte, end int) {
	if s.regex != nil {
		s.byRegex(text[:end])
		return
	}
	if s.bytes < int64(end) || time.Now().After(s.deadline) {
		if s.scanned > 0 {
			s.stopped = byBudget
			return
		}
	}
	s.spend(end)
	prepared := s.look(text)
	start := 0
	for start < end {
		i := s.index(prepared[start:min(len(prepared), end+len(s.literal)-1)])
		if i < 0 {
			break
		}
		i += start
		segment := start + bytes.LastIndexByte(text[start:i], '\n') + 1
		for next := segmentEnd(text, segment); next <= i; next = segmentEnd(text, segment) {
			segment = next
		}
		s.advance(text[start:segment])
		if !s.add(text[segment:], i-segment) {
			return
		}
		start = segmentEnd(text, segment)
		s.advance(text[segment:start])
	}
	s.advance(text[start:end])
}

// byRegex scans segments one by one: any of them may take long.
func (s *scan) byRegex(text []byte) {
	for start := 0; start < len(text); {
		end := segmentEnd(text, start)
		size := end - start
		late := time.Now().Add(time.Duration(size) * s.perByte).After(s.deadline)
		if s.scanned > 0 && (late || s.bytes < int64(size)) {
			s.stopped = byBudget
			return
		}
		s.spend(size)
		line := bytes.TrimSuffix(text[start:end], []byte{'\n'})
		if at := s.regex.FindIndex(line); at != nil && !s.add(line, at[0]) {
			return
		}
		s.advance(text[start:end])
		start = end
	}
}

func (s *scan) spend(n int) {
	s.bytes -= int64(n)
	s.scanned += int64(n)
}

// add notes a match that begins at byte from of the segment that begins at s.next. It reports false if no more matches
// are wanted.
func (s *scan) add(segment []byte, from int) bool {
	if s.wanted == 0 {
		s.stopped = byMatches
		return false
	}
	s.wanted--
	s.found = append(s.found, match{
		place: s.next, char: s.next.char + charsOf(segment[:from]), from: s.next.at + int64(from),
	})
	return true
}

// advance moves s.next behind whole segments.
func (s *scan) advance(segments []byte) {
	s.next.at += int64(len(segments))
	if feeds := bytes.Count(segments, []byte{'\n'}); feeds > 0 {
		s.next.line += int64(feeds)
		s.next.char = 0
		segments = segments[bytes.LastIndexByte(segments, '\n')+1:]
	}
	s.next.char += charsOf(segments)
}
