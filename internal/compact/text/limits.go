package text

import "bytes"

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
