// Package spelling measures how far a misspelt name is from a known one, so that an error can name what was probably
// meant. It is pure.
package spelling

// Distance is how many bytes have to be changed, added or removed to make b of a. A name more than twice as long as b is
// as far as it is long, so that a hostile one costs nothing.
func Distance(a, b string) int {
	if len(a) > 2*len(b)+maxShort {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxShort is how long a name may be that is measured against even the shortest one.
const maxShort = 16
