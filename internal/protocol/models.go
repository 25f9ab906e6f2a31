package protocol

// SummaryModel is a language model that writes summaries for the policies that name it.
type SummaryModel struct {
	ID string `json:"id"` // the operator's name, for `summarise.model`
	// the protocol: openai, openai-responses or anthropic
	Provider        string `json:"provider" schema:"enum: [openai, openai-responses, anthropic]"`
	Model           string `json:"model"`             // as the provider names it
	WindowTokens    int    `json:"window_tokens"`     // of request and answer together
	MaxOutputTokens int    `json:"max_output_tokens"` // of an answer
	// of a million tokens, in the operator's currency; 0 if the operator has said none
	Price Price `json:"price"`
}

// Price is what a million tokens cost, in the operator's currency.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached_input"` // of tokens that the provider reads from its cache
	Output float64 `json:"output"`
}
