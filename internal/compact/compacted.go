package compact

import "github.com/varve-dev/varve/internal/wire"

// A provider's own compaction stays in the view as it is until there is a newer one. What is before it the provider no
// longer reads, so that leaves first: for a reader in another format a notice names it.

// compactionAt returns the message with the newest compaction by the provider itself, -1 for none.
func (h *history) compactionAt() int {
	m := len(h.messages) - 1
	for m >= 0 && !h.compacts(m) {
		m--
	}
	return m
}

// compacts reports whether message m, which is the model's or an item, has a compaction by the provider.
func (h *history) compacts(m int) bool {
	return (h.provider.Items || h.messages[m].role == assistant) && wire.Compacts(h.in.Format, h.body(m))
}

// locks reports whether message m never changes and never leaves: one of the leading system messages, or one with the
// provider's own compaction.
func (s *runState) locks(m int) bool { return m < s.leading || m == s.compaction }

// setPinned sets which messages stay before all that may leave: the system's or, behind them, the provider's own
// compaction and what belongs to its unit.
func (s *runState) setPinned() {
	s.leading = s.systemMessages()
	if s.pinned = s.leading; s.compaction < s.leading {
		return
	}
	s.pinned = len(s.messages)
	for _, start := range s.starts(len(s.messages)) {
		if start > s.compaction {
			s.pinned = start
			return
		}
	}
}

// dropCompacted drops the units before the provider's own compaction. It leaves the messages of the user alone that
// are the only ones there: they are part of what /responses/compact of OpenAI returns.
func (s *runState) dropCompacted() error {
	end, said := s.leading, false
	for _, start := range s.starts(s.through()) {
		if start <= s.compaction {
			end = max(end, start)
		}
	}
	for m := s.leading; m < end; m++ {
		said = said || s.messages[m].role != user
	}
	if !said {
		return nil
	}
	s.stage = "truncate"
	d := s.newEviction(s.leading, end, Drop)
	if d == nil {
		return nil
	}
	d.compacted = true
	s.pinTo(d)
	if err := d.compose(s.in.Format, s.count, &s.words.truncated, replacementText{}); err != nil {
		return err
	}
	if d.now >= d.currentTokens(s.history) {
		return nil
	}
	d.tokens = s.noticeTokens()
	for m := range d.evicted() {
		s.relief[m] += int64(s.messages[m].tokens)
		for i := s.messages[m].first; i < s.messages[m].last; i++ {
			s.free[i] = false
		}
	}
	s.relief[d.begin] -= int64(d.tokens)
	s.eviction = d
	return nil
}
