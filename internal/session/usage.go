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

// The limits of the factor by which an exact count of the messages, or a refusal, corrects the estimate.
const (
	MinCalibration = 0.5
	MaxCalibration = 20.0
)

// TooLong is what a caller reports whose provider refused a request because it was too long.
const TooLong = "context_length_exceeded"

// tooLongBy is how many times the window a request is taken to have had that was refused as too long.
const tooLongBy = 1.1

// CalibrationOfRefused returns the factor of a session whose provider refused its view as too long. counted is what the
// provider counted, 0 if it did not say. What was sent is the view or, if that is over the window, perhaps a view that
// was bounded by it: what is nearer to the provider's count.
func (s Session) CalibrationOfRefused(counted int64) float64 {
	window, sent := float64(s.WindowTokens), float64(s.CalibratedTokens())
	was := float64(counted)
	if sent > window && (counted == 0 || math.Abs(was-window) < math.Abs(was-sent)) {
		sent = window
	}
	was = max(was, tooLongBy*window)
	estimated := (sent - float64(s.UnseenTokens)) / s.Calibration
	if estimated <= 0 {
		return s.Calibration
	}
	return min(max((was-float64(s.UnseenTokens))/estimated, s.Calibration), MaxCalibration)
}

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
