// Package rawjson reads JSON text without decoding it: it checks a text strictly in one pass, and then yields members,
// elements and strings as byte ranges. The standard decoder replaces lone surrogates, drops duplicate keys and costs
// several passes; a store that promises the same bytes back must not change them.
//
// Start at Check, which must pass before anything else here is called; then Members, Elements and Unquote.
package rawjson

// Span is a half-open byte range of a JSON text. The zero Span means "not there".
type Span struct{ Start, End int }

// Of returns the bytes of data that s covers.
func (s Span) Of(data []byte) []byte { return data[s.Start:s.End] }

// space returns the first index at or after i that is not white space.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}
