//go:build race

package compact

// The race detector makes the engine ten times slower, and the engine has no goroutines of its own. CI runs
// TestCorpusViews once more without it, at more points.
const (
	defaultHistories = 4_000
	defaultPoints    = 1
)
