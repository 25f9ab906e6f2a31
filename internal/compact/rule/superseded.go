package rule

// Occurrence is one result of the resource that Key identifies.
type Occurrence[K comparable] struct {
	Key    K
	Counts bool // it may supersede older ones; a failed or empty result may not
}

// Superseded returns for each occurrence the index of the newer one that supersedes it, or -1: the keepLast-th counting
// one of its key after it. keepLast must be at least 1. Later occurrences never change an index.
func Superseded[K comparable](newestLast []Occurrence[K], keepLast int) []int {
	by := make([]int, len(newestLast))
	newer := make(map[K][]int) // those that count, from the newest backwards
	for i := len(newestLast) - 1; i >= 0; i-- {
		o, seen := newestLast[i], newer[newestLast[i].Key]
		by[i] = -1
		if len(seen) >= keepLast {
			by[i] = seen[len(seen)-keepLast]
		}
		if o.Counts {
			newer[o.Key] = append(seen, i)
		}
	}
	return by
}
