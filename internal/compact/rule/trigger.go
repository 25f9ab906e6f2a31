package rule

import "math"

// Reached reports whether total is at or above that share of the window, rounded down to whole tokens.
func Reached(total, window int64, ratio float64) bool {
	return float64(total) >= math.Floor(float64(window)*ratio)
}
