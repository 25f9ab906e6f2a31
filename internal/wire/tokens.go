package wire

// messageTokens is the cost of a message's role and delimiters.
const messageTokens = 4

// EstimateTokens estimates the tokens of a text of so many bytes.
func EstimateTokens(decodedBytes int) int { return (decodedBytes + 3) / 4 }
