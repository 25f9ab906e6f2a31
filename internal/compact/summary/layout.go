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

// order is which entries of a section are kept if there is no room for all.
type order int

const (
	newestFirst order = iota
	oldestFirst
	worthFirst
)

// layout has for each section its heading, its share of the room if there is not enough for all, the order in which its
// entries are kept, and whether they are facts to retain.
var layout = [sectionCount]struct {
	heading  string
	share    int
	order    order
	retained bool
}{
	goal:     {"## Goal", 6, oldestFirst, true},
	task:     {"## Task now", 8, newestFirst, false},
	plan:     {"## Plan", 8, oldestFirst, false},
	files:    {"## Files in flight", 8, newestFirst, false},
	failures: {"## Errors, not solved", 6, newestFirst, false},
	next:     {"## Next", 6, oldestFirst, false},
	demands:  {"## The user's demands", 26, worthFirst, true},
	findings: {"## Decisions and findings", 40, worthFirst, true},
	before:   {"## Tasks before", 10, newestFirst, false},
	said:     {"## The user's messages", 8, newestFirst, false},
	calls:    {"## Calls", 4, newestFirst, false},
	reads:    {"## Files read", 4, newestFirst, false},
	solved:   {"## Errors, past", 2, newestFirst, false},
	earlier:  {"## Earlier summary", 4, oldestFirst, false},
	state:    {"## Last state", 6, newestFirst, false},
}
