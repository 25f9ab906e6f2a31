//go:build !race

package compact

const (
	defaultHistories = 20_000
	defaultPoints    = 2
)
