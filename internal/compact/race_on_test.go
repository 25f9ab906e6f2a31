//go:build race

package compact

// The race detector makes the engine ten times slower, and the engine has no goroutines of its own.
const defaultHistories = 4_000
