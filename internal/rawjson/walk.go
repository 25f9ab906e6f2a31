package rawjson

import (
	"bytes"
	"iter"
)

// Start returns the start of the one value in data: the first byte that is not white space.
func Start(data []byte) int { return space(data, 0) }

// Value returns the span of the one value in data, without the white space around it.
func Value(data []byte) Span {
	start := Start(data)
	return Span{start, Skip(data, start)}
}

// Skip returns the end of the value that starts at i.
func Skip(data []byte, i int) int {
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipNested(data, i)
	}
	for i < len(data) && !delimiter(data[i]) {
		i++
	}
	return i
}

func delimiter(b byte) bool { return b == ',' || b == '}' || b == ']' || b <= ' ' }

// skipString returns the end of the literal at i: after the first quote that an even number of backslashes precedes.
func skipString(data []byte, i int) int {
	for start := i + 1; ; start = i + 1 {
		i = start + bytes.IndexByte(data[start:], '"')
		first := i
		for first > start && data[first-1] == '\\' {
			first--
		}
		if (i-first)%2 == 0 {
			return i + 1
		}
	}
}

func skipNested(data []byte, i int) int {
	for depth := 0; ; {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// Members yields the key (with its quotes) and the value of each member of the object that starts at start, in the
// order of the text, repeated keys included.
func Members(data []byte, start int) iter.Seq2[Span, Span] {
	return func(yield func(key, value Span) bool) {
		for i := space(data, start+1); data[i] != '}'; i = next(data, i) {
			key := Span{i, skipString(data, i)}
			i = space(data, space(data, key.End)+1)
			value := Span{i, Skip(data, i)}
			if !yield(key, value) {
				return
			}
			i = value.End
		}
	}
}

// Elements yields each element of the array that starts at start.
func Elements(data []byte, start int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for i := space(data, start+1); data[i] != ']'; i = next(data, i) {
			element := Span{i, Skip(data, i)}
			if !yield(element) {
				return
			}
			i = element.End
		}
	}
}

// Inside returns the start of the first member or element of the object or array that starts at start, or its closing
// bracket. With MemberAt and Next it goes over an object like Members, but the caller finds where each value ends.
func Inside(data []byte, start int) int { return space(data, start+1) }

// MemberAt returns the key of the member that starts at i, and where its value starts.
func MemberAt(data []byte, i int) (key Span, value int) {
	key = Span{i, skipString(data, i)}
	return key, space(data, space(data, key.End)+1)
}

// Next returns the start of the member or element that follows the one that ended at i, or the closing bracket.
func Next(data []byte, i int) int { return next(data, i) }

// next returns the start of what follows the member or element that ended at i: the next one or the closing bracket.
func next(data []byte, i int) int {
	if i = space(data, i); data[i] == ',' {
		i = space(data, i+1)
	}
	return i
}

// KeyIs reports whether the text of the string literal at key is name.
func KeyIs(data []byte, key Span, name string) bool {
	inner := data[key.Start+1 : key.End-1]
	if string(inner) == name {
		return true
	}
	if len(inner) <= len(name) || bytes.IndexByte(inner, '\\') < 0 {
		return false
	}
	text, ok := Unquote(nil, key.Of(data))
	return ok && string(text) == name
}

// HasAny reports whether one of the words, as it stands between quotes, is a key or a value in data: valid JSON, one
// document or several with white space or commas between.
func HasAny(data []byte, words []string) bool {
	if len(words) == 0 {
		return false
	}
	for at := 0; ; {
		quote := bytes.IndexByte(data[at:], '"')
		if quote < 0 {
			return false
		}
		start := at + quote + 1
		at = skipString(data, start-1)
		for _, word := range words {
			if string(data[start:at-1]) == word {
				return true
			}
		}
	}
}
