package protocol

// SummaryModel is a language model that writes summaries for the policies that name it.
type SummaryModel struct {
	ID              string `json:"id"`                // the operator's name, for summarise.model
	Provider        string `json:"provider"`          // the protocol: openai, openai-responses or anthropic
	Model           string `json:"model"`             // as its provider names it
	WindowTokens    int    `json:"window_tokens"`     // of request and answer together
	MaxOutputTokens int    `json:"max_output_tokens"` // of an answer
	Price           Price  `json:"price"`
}

// Price is what a million tokens cost, in the operator's currency.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached_input"`
	Output float64 `json:"output"`
}
