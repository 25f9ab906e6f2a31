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

// The correction of the estimate of tokens by what callers report as used. A report moves the factor by a part of its
// distance, so that one that is wrong does little; after twenty of them nearly nothing is left of what it was before.
const (
	MinCalibration  = 0.5
	MaxCalibration  = 3.0
	CalibrationStep = 0.25
)

// CalibratedTokens returns the tokens of the session's view and overhead as its provider would count them.
func (s Session) CalibratedTokens() int64 {
	return int64(math.Round(float64(s.ContextTokens+int64(s.OverheadTokens)) * s.Calibration))
}
