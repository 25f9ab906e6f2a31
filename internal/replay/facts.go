package replay

// fact is a planted fact.
type fact struct{}

// Plant returns a copy of the session with facts of every kind in some of its messages. The same seed, from 1, gives
// the same facts.
func (s *Session) Plant(seed int) *Session {
	return &Session{Name: s.Name, Format: s.Format, Messages: s.Messages, seed: seed}
}
