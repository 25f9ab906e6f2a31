package view

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// pinLoading pins the units of a view that load tools and stay.
func (o *opened) pinLoading(all []unit) []unit {
	loads := wire.NewLoads(float64(o.limit))
	for i := range slices.Backward(all) {
		u := &all[i]
		if !loads.IsNew(u.loads(o.stored.Format)) || u.Pinned {
			continue
		}
		if !loads.Fits(u.Tokens) {
			return all
		}
		u.Pinned = true
	}
	return all
}

// loads returns what the messages of a unit load.
func (u *unit) loads(own session.Format) (names []string) {
	if u.Joined != nil && !wire.MayLoad(own, u.Joined) {
		return nil
	}
	messages, err := u.messages(own)
	if err != nil {
		return nil
	}
	for i := range messages {
		names = append(names, wire.LoadedTools(messages[i].Format, messages[i].Body)...)
	}
	return names
}
