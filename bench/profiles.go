package main

import (
	"context"
	"fmt"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/policy"
)

// windows are those in which the recorded conversations are compacted: most coding sessions cross the trigger of the
// smallest, the longest ones that of the largest.
var windows = []int{32_000, 64_000, 128_000}

// allSets is the name of all data sets together.
const allSets = "all"

// life is what a profile makes of the recorded conversations of one data set, each compacted as it would have been:
// whenever an append crosses the trigger. Tokens are those of the conversations that did.
type life struct {
	Window      int     `json:"window"`
	Profile     string  `json:"profile"`
	Set         string  `json:"set"`
	Sessions    int     `json:"sessions"`
	Crossed     int     `json:"crossed"`       // sessions that reached their trigger
	OnTarget    int     `json:"on_target"`     // and were brought under their target by the last compaction
	Compactions int     `json:"compactions"`   // that changed their view
	Before      int64   `json:"tokens_before"` // of the whole log
	After       int64   `json:"tokens_after"`  // of the view at the end
	Compacted   int64   `json:"tokens_compacted"`
	Kept        int64   `json:"tokens_kept"` // of these, those of the beginnings that kept their bytes
	Share       float64 `json:"after_to_before"`
	KeptShare   float64 `json:"kept_share"`
}

// measureProfiles lets every recorded conversation live under every profile.
func measureProfiles(ctx context.Context, b *bench) error {
	read, unread, err := compacttest.Recorded(b.data)
	if err != nil {
		return err
	}
	if len(read) == 0 {
		b.note("profiles: not measured, because there are no recorded conversations in %s", b.data)
		return nil
	}
	b.note("profiles: %d conversations; %d files are of formats that the importer cannot read", len(read), len(unread))
	for _, window := range windows {
		for _, profile := range policy.Profiles() {
			name := fmt.Sprintf("profile %s, window of %dk", profile, window/1000)
			if !b.wants(name) {
				continue
			}
			if err := b.measureProfile(ctx, read, profile, window); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			all := &b.lives[len(b.lives)-1]
			b.progress("%s: %d sessions, %.2f of their tokens", name, all.Crossed, all.Share)
		}
	}
	return nil
}

func (b *bench) measureProfile(ctx context.Context, read []compacttest.Conversation, profile string, window int) error {
	policy, err := policy.Profile(profile)
	if err != nil {
		return err
	}
	all := life{Window: window, Profile: profile, Set: allSets}
	var sets []life
	for i := range read {
		c := &read[i]
		if n := len(sets); n == 0 || sets[n-1].Set != c.Set {
			sets = append(sets, life{Window: window, Profile: profile, Set: c.Set})
		}
		r := newReplay(c.Format, policy, window)
		for _, e := range entries(c) {
			if err := r.append(e); err != nil {
				return fmt.Errorf("%s: %w", c.ID, err)
			}
		}
		sets[len(sets)-1].add(r, c)
		all.add(r, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, l := range append(sets, all) {
		if l.Crossed == 0 && l.Set != allSets {
			continue
		}
		l.Share, l.KeptShare = share(l.After, l.Before), share(l.Kept, l.Compacted)
		b.lives = append(b.lives, l)
	}
	return nil
}

func (l *life) add(r *replay, c *compacttest.Conversation) {
	l.Sessions++
	if !r.crossed {
		return
	}
	l.Crossed++
	l.Compactions += len(r.done)
	l.Before += int64(c.Total())
	l.After += r.context
	for _, done := range r.done {
		l.Compacted += done.before
		l.Kept += done.kept
	}
	if n := len(r.done); n > 0 && float64(r.done[n-1].after) <= r.target() {
		l.OnTarget++
	}
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
