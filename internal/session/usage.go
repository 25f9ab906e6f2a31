package session

import "math"

// Usage is what a provider reported for one request: the one whose answer an append brings.
type Usage struct {
	Model               string `json:"model,omitempty"`
	InputTokens         int64  `json:"input_tokens"`          // neither written to the prompt cache nor read from it
	CacheCreationTokens int64  `json:"cache_creation_tokens"` // written to the prompt cache
	CacheReadTokens     int64  `json:"cache_read_tokens"`     // read from it
	OutputTokens        int64  `json:"output_tokens"`
}

// Input returns the number of tokens that the request sent to the model.
func (u Usage) Input() int64 { return u.InputTokens + u.CacheCreationTokens + u.CacheReadTokens }

// The limits of the factor by which an exact count of the messages corrects the estimate.
const (
	MinCalibration = 0.5
	MaxCalibration = 3.0
)

// CalibratedTokens returns the tokens of the session's view and overhead as its provider would count them. What it
// counted less than the estimate may have left the view since.
func (s Session) CalibratedTokens() int64 {
	estimated := math.Round(float64(s.ContextTokens+int64(s.OverheadTokens)) * s.Calibration)
	return max(int64(estimated)+s.UnseenTokens, 0)
}

// Room returns how many estimated tokens a view of the session may have beside the overhead. What the provider counts
// beyond the estimate takes room. What it counts less gives none, because that may be of other messages than those of
// the view.
func (s Session) Room() int64 {
	window := float64(s.WindowTokens)
	counted := math.Floor((window - float64(s.UnseenTokens)) / s.Calibration)
	return max(int64(min(window, counted))-int64(s.OverheadTokens), 0)
}
