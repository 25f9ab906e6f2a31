package summary

// section is one of the headings of Extract, in the order of the summary: first the state, then what was found.
type section int

const (
	goal section = iota
	task
	plan
	files
	failures
	next
	demands
	findings
	before
	said
	calls
	reads
	solved
	earlier
	state
	sectionCount
)

// ofFiles reports whether the entries of a section begin with a path.
func (s section) ofFiles() bool { return s == files || s == reads }

// order is which entries of a section are kept if there is no room for all.
type order int

const (
	newestFirst order = iota
	oldestFirst
	worthFirst
)

// layout has for each section its heading, its share of the room if there is not enough for all, the order in which its
// entries are kept, whether they are facts to retain, and how many there may be.
var layout = [sectionCount]struct {
	heading  string
	share    int
	order    order
	retained bool
	limit    int // of entries, 0 for none
}{
	goal:     {"## Goal", 6, oldestFirst, true, 0},
	task:     {"## Task now", 8, newestFirst, false, 0},
	plan:     {"## Plan", 8, oldestFirst, false, 0},
	files:    {"## Files in flight", 24, newestFirst, false, 0},
	failures: {"## Errors, not solved", 6, newestFirst, false, 0},
	next:     {"## Next", 6, oldestFirst, false, 0},
	demands:  {"## The user's demands", 24, worthFirst, true, 0},
	findings: {"## Decisions and findings", 44, worthFirst, true, 0},
	before:   {"## Tasks before", 8, newestFirst, true, 0},
	said:     {"## The user's messages", 6, newestFirst, true, 0},
	calls:    {"## Calls", 4, newestFirst, false, 24},
	reads:    {"## Files read", 5, newestFirst, false, 0},
	solved:   {"## Errors, past", 2, newestFirst, false, 8},
	earlier:  {"## Earlier summary", 4, oldestFirst, true, 0},
	state:    {"## Last state", 6, newestFirst, false, 0},
}
