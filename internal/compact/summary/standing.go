package summary

// Standing returns the sentences of a user's text that ask for something to be done or left undone from now on, word
// for word. What a harness wrote is not the user's, see Said.
func Standing(text string) (found []string) {
	for s := range sentences(Unquoted(Said(text))) {
		if demanded(s) >= commanded {
			found = append(found, s)
		}
	}
	return found
}
