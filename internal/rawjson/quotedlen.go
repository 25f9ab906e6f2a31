package rawjson

// QuotedLen returns the length of the literal that Quote would append.
func QuotedLen(text []byte) int {
	var buffer [512]byte
	return len(Quote(buffer[:0], text))
}
