package text

import "bytes"

const ellipsis = "…"

// ClipLines appends t to dst. It cuts each line of more than maxChars characters to that, the last of them "…". Line
// ends do not change. Clipping again changes nothing.
func ClipLines(dst, t []byte, maxChars int) []byte {
	for {
		line, end := firstLine(t)
		if len(line) > maxChars && Len(line) > maxChars {
			dst = append(append(dst, First(line, maxChars-1)...), ellipsis...)
		} else {
			dst = append(dst, line...)
		}
		if end == len(t) {
			return append(dst, t[len(line):]...)
		}
		dst = append(dst, t[len(line):end]...)
		t = t[end:]
	}
}

// WholeLinesHead returns the longest beginning of t of up to n characters that ends before a line end; if not even one
// line fits, it returns what First does.
func WholeLinesHead(t []byte, n int) []byte {
	head := First(t, n)
	if len(head) == len(t) || t[len(head)] == '\n' {
		return head
	}
	if i := bytes.LastIndexByte(head, '\n'); i > 0 {
		return head[:i]
	}
	return head
}

// WholeLinesTail returns the longest end of t of up to n characters that begins at a line's beginning; if not even one
// line fits, it returns what Last does.
func WholeLinesTail(t []byte, n int) []byte {
	tail := Last(t, n)
	start := len(t) - len(tail)
	if start == 0 || t[start-1] == '\n' {
		return tail
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
		return tail[i+1:]
	}
	return tail
}

// CountLines returns the number of lines of t; a line feed at its end begins one more.
func CountLines(t []byte) int { return bytes.Count(t, []byte{'\n'}) + 1 }

// firstLine returns the first line of t without its end, and the offset after that end. A carriage return is part of
// the end if a line feed follows. The last line has no end: the line and the offset reach to the end of t.
func firstLine(t []byte) (line []byte, end int) {
	i := bytes.IndexByte(t, '\n')
	if i < 0 {
		return t, len(t)
	}
	if i > 0 && t[i-1] == '\r' {
		return t[:i-1], i + 1
	}
	return t[:i], i + 1
}

// LongestLine returns the length of t's longest line in characters, without its end.
func LongestLine(t []byte) int {
	longest := 0
	for {
		line, end := firstLine(t)
		if len(line) > longest {
			longest = max(longest, Len(line))
		}
		if end == len(t) {
			return longest
		}
		t = t[end:]
	}
}

// LeadingLines returns the first n lines of t with their ends.
func LeadingLines(t []byte, n int) []byte {
	end := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(t[end:], '\n')
		if i < 0 {
			return t
		}
		end += i + 1
	}
	return t[:end]
}

// TrailingLines returns the last n lines of t. A line feed at the end of t ends the last of them.
func TrailingLines(t []byte, n int) []byte {
	start := len(bytes.TrimSuffix(t, []byte{'\n'}))
	if n <= 0 {
		return t[len(t):]
	}
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(t[:start], '\n')
		if i < 0 {
			return t
		}
		start = i
	}
	return t[start+1:]
}
