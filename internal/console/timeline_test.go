package console_test

import (
	"math"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/console"
	"github.com/varve-dev/varve/internal/session"
)

// TestACheckpointIsPaidBackByTheCache has five requests before a checkpoint and five behind it.
func TestACheckpointIsPaidBackByTheCache(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	log := []session.Growth{
		{Seq: 10, At: began, Tokens: 1000, ViewTokens: 1000, Requests: 5},
		{Seq: 20, At: began.Add(time.Hour), Tokens: 2000, ViewTokens: 2000, Requests: 10},
	}
	made := []session.CheckpointRecord{{N: 1, Through: 10, Tokens: 200, Kept: new(int64(50)), CreatedAt: began.Add(time.Minute)}}
	const read, write = 0.1, 1.0
	before := 5*read*500 + (write-read)*1000
	rewrite := (write - read) * (200 - 50)
	want := map[string]float64{
		"cost": before + rewrite + 5*read*700 + (write-read)*1000, "without": before + 5*read*1500 + (write-read)*1000,
		"paid back after": rewrite / (read * 800),
	}
	cost, whole, paidBack := console.Spent(log, made, read, write)
	for name, got := range map[string]float64{"cost": cost, "without": whole, "paid back after": paidBack} {
		if math.Abs(got-want[name]) > 1e-6 {
			t.Errorf("%s: %v, want %v", name, got, want[name])
		}
	}
}
