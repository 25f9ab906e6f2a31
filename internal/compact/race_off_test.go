//go:build !race

package compact

const defaultHistories = 20_000
