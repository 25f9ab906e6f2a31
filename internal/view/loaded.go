package view

import (
	"slices"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// pinLoading pins the units of a view that load tools which no newer unit loads, as far as they take a quarter of what
// the view may have.
func (o *opened) pinLoading(all []unit) []unit {
	loaded := map[string]bool{}
	room := o.limit / 4
	for i := range slices.Backward(all) {
		u := &all[i]
		isNew := false
		for _, name := range u.loads(o.stored.Format) {
			isNew = isNew || !loaded[name]
			loaded[name] = true
		}
		if !isNew || u.Pinned {
			continue
		}
		if room -= u.Tokens; room < 0 {
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
