package conformance

import (
	"math"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/compact/text"
)

// What the systems count and decide in ways that the engine's promises forbid, or for which it has a better one.

// The systems estimate a text's tokens by its length alone, each in its own way.

// utf16Quarters returns a token for every four characters, rounded up: cortex and falai.
func utf16Quarters(t []byte) int { return (text.Len(t) + 3) / 4 }

// codePointQuarters returns a token for every four code points, rounded down: llm-proxy.
func codePointQuarters(t []byte) int { return utf8.RuneCount(t) / 4 }

// byteQuarters returns a token for every four bytes, rounded up: codelia.
func byteQuarters(t []byte) int { return (len(t) + 3) / 4 }

// overBudget says which of sizes, oldest first, have to be replaced so that their sum fits into budget, where after
// says what each has left then. The sum never counts as less than nothing; if it does not fit, all are replaced.
func overBudget(sizes, after []int, budget int) []bool {
	replace := make([]bool, len(sizes))
	left := sumOf(sizes)
	for i := 0; i < len(sizes) && left > budget; i++ {
		replace[i] = true
		left = max(0, left-sizes[i]+after[i])
	}
	return replace
}

// fitting returns how many of the newest, which are the last of sizes, fit into room together; it stops at the first that does
// not.
func fitting(sizes []int, room int) int {
	for i := len(sizes) - 1; i >= 0; i-- {
		if room -= sizes[i]; room < 0 {
			return len(sizes) - 1 - i
		}
	}
	return len(sizes)
}

// reached reports whether total is at or above that share of the window, rounded down to whole tokens.
func reached(total, window int64, ratio float64) bool {
	return float64(total) >= math.Floor(float64(window)*ratio)
}
