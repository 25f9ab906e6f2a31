package rule

// OverBudget says which of sizes, oldest first, have to be replaced so that their sum fits into budget, where after
// says what each has left then. The sum never counts as less than nothing; if it does not fit, all are replaced.
func OverBudget(sizes, after []int, budget int) []bool {
	replace := make([]bool, len(sizes))
	total := sum(sizes)
	for i := 0; i < len(sizes) && total > budget; i++ {
		replace[i] = true
		total = max(0, total-sizes[i]+after[i])
	}
	return replace
}

// Fit is how many of the newest, which are the last of sizes, fit into room together; it stops at the first that does
// not.
func Fit(sizes []int, room int) int {
	for i := len(sizes) - 1; i >= 0; i-- {
		if room -= sizes[i]; room < 0 {
			return len(sizes) - 1 - i
		}
	}
	return len(sizes)
}

func sum(sizes []int) int {
	total := 0
	for _, size := range sizes {
		total += size
	}
	return total
}
