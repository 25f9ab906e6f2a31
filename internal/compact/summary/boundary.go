package summary

// Turn has the facts about a message that decide how far a summary reaches.
type Turn struct {
	User      bool // a turn begins with this message of the user
	UnitStart bool
	Tokens    int
}

// Boundary returns how many of the leading messages may be summarised. It keeps the newest keepMessages, and everything
// from the keepTurns-th newest message of the user on; with fewer of them it keeps everything. Of a turn with more than
// maxTurnTokens (0: no limit) it keeps only the newest units, at least one, and nothing before that turn. The boundary
// is never inside a unit.
func Boundary(turns []Turn, keepTurns, keepMessages int, maxTurnTokens int64) int {
	n := min(keptTurns(turns, keepTurns, maxTurnTokens), max(0, len(turns)-max(0, keepMessages)))
	for n > 0 && n < len(turns) && !turns[n].UnitStart {
		n--
	}
	return n
}

// keptTurns returns where the newest turns begin that are kept.
func keptTurns(turns []Turn, keep int, maxTokens int64) int {
	end := len(turns)
	for m := end - 1; m >= 0 && keep > 0; m-- {
		if !turns[m].User && m > 0 {
			continue
		}
		if start := newestEnd(turns, m, end, maxTokens); start > m {
			return start
		}
		if !turns[m].User {
			return 0
		}
		keep--
		end = m
	}
	if keep > 0 {
		return 0
	}
	return end
}

// newestEnd returns where the newest units of turns[from:to] begin that have up to maxTokens together, at least one.
func newestEnd(turns []Turn, from, to int, maxTokens int64) int {
	start, sum := to, int64(0)
	for m := to - 1; m >= from; m-- {
		sum += int64(turns[m].Tokens)
		if maxTokens > 0 && sum > maxTokens && start < to {
			return start
		}
		if turns[m].UnitStart || m == from {
			start = m
		}
	}
	return start
}
