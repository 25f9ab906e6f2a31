package wire

// What the estimator counts with. It is deliberately simple and linear, so that sums of parts are sums of messages;
// what callers report as used calibrates it.
const (
	bytesPerToken = 4    // UTF-8 bytes of English text and code to a token, as tokenizers average
	imageTokens   = 1500 // an image or file: what providers charge for a full-size picture or a page
	messageTokens = 4    // a message's role and delimiters
)

// EstimateTokens estimates the tokens of a text of so many bytes.
func EstimateTokens(decodedBytes int) int { return (decodedBytes + bytesPerToken - 1) / bytesPerToken }
