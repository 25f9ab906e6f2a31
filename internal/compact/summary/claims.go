package summary

import (
	"strconv"
	"strings"
)

// What is a claim.
const (
	largestCount = 20 // the largest whole number that is no claim: a writer counts things, and numbers its lists
	shortestID   = 6  // characters of an id of letters and digits
	shortestHash = 7  // characters of a hash that are enough to name it
	longestHash  = 16 // characters of a hash that are usual to name it, if not all of them are there
	shortestName = 4  // characters of a name with underscores
	mostAtoms    = 16 // of a run that are compared together; of a longer one, pieces that overlap
)

// claim is something exact that a sentence states. It is supported if everything of one of its alternatives occurs in
// what the answer covers; an alternative has the hashes of runs.
type claim [][]uint64

// claimReader finds the claims of a sentence.
type claimReader struct {
	claims   []claim
	request  Request
	sentence string
	code     bool // what is read is code, in which every word counts
	skip     int  // what begins before it belongs to a number that was read
}

// claimsOf returns the claims of a sentence: whole numbers above 20, and decimals; paths, links, addresses, dates,
// versions, refs and other ids with digits; hashes; names with underscores; and all that is code.
func (r Request) claimsOf(sentence string, fenced bool) []claim {
	c := claimReader{request: r, sentence: sentence}
	for i, text := range strings.Split(sentence, "`") {
		c.code, c.skip = fenced || i%2 == 1, 0
		eachRun(text, c.read)
	}
	return c.claims
}

// covers reports whether digits are a seq that the request covers.
func (r Request) covers(digits string) bool {
	seq, ok := parseSeq(digits)
	return ok && r.First <= seq && seq <= r.Last
}

// isSeq reports whether a number is a seq that the request covers, which an answer may name although the messages
// do not have it: in brackets, or in a sentence about messages.
func (r *claimReader) isSeq(digits string) bool {
	named := strings.Contains(r.sentence, "["+digits+"]") || strings.Contains(strings.ToLower(r.sentence), "messag")
	return named && r.request.covers(digits)
}

func (r *claimReader) add(alternatives ...[]uint64) { r.claims = append(r.claims, alternatives) }

// read adds the claims of a run.
func (r *claimReader) read(u *run) {
	whole := u.text[u.begin:u.atoms[len(u.atoms)-1].end]
	switch {
	case u.begin < r.skip:
	case strings.Contains(whole, "://") || len(u.atoms) > 2 && strings.Contains(whole, "@"):
		r.add(windows(u.atoms))
	case r.seqs(u):
	default:
		begin := 0
		for i := 1; i <= len(u.atoms); i++ {
			if i == len(u.atoms) || u.signs(i) == ":" && !clock(u) {
				r.piece(&run{u.text, u.begin, u.absolute && begin == 0, u.atoms[begin:i]})
				begin = i
			}
		}
	}
}

// clock reports whether a run has a time of day in it: colons between numbers of two digits.
func clock(u *run) bool {
	for i := 1; i < len(u.atoms); i++ {
		if u.signs(i) == ":" && u.atoms[i].digits == 2 && u.atoms[i-1].digits >= 2 {
			return true
		}
	}
	return false
}

// seqs reports whether a run is a ref of messages that the answer covers, such as m1-57.
func (r *claimReader) seqs(u *run) bool {
	digits, isRef := strings.CutPrefix(u.word(0), "m")
	for i := range u.atoms {
		if i > 0 {
			digits = u.word(i)
		}
		isRef = isRef && r.request.covers(digits)
	}
	return isRef && len(u.atoms) <= 2
}

// piece adds the claims of a run without colons.
func (r *claimReader) piece(u *run) {
	numbers := 0
	for i := range u.atoms {
		if u.atoms[i].digits > 0 {
			numbers++
		}
	}
	n := len(u.atoms)
	switch {
	case decimal(u.atoms):
		r.decimal(u)
	case path(u):
		r.path(u)
	case r.code && n > 1 || numbers > 1 && (n > 2 || !u.atoms[0].number() || !u.atoms[1].number()):
		r.add(windows(u.atoms))
	default:
		for i := range u.atoms {
			r.single(u, i)
		}
	}
}

// path reports whether a run is a path or a name with dots: it begins with a slash, has two of them, or ends with a dot
// and up to five letters or digits.
func path(u *run) bool {
	n, slashes := len(u.atoms), 0
	for i := 1; i < n; i++ {
		if strings.ContainsAny(u.signs(i), `/\`) {
			slashes++
		}
	}
	if u.absolute || slashes > 1 {
		return true
	}
	if n < 2 || u.signs(n-1) != "." {
		return false
	}
	const longestSuffix = 5
	last, stem := &u.atoms[n-1], &u.atoms[n-2]
	small := u.word(n - 1)[0] >= 'a' || last.digits > 0
	return last.length <= longestSuffix && !last.number() && small && stem.length > 1
}

// path adds the claim that a path occurs. One that begins with a slash may be made of a directory and a path in it.
func (r *claimReader) path(u *run) {
	alternatives := [][]uint64{windows(u.atoms)}
	for i := 1; u.absolute && i < min(len(u.atoms), mostAtoms); i++ {
		if strings.ContainsAny(u.signs(i), `/\`) {
			alternatives = append(alternatives, append(windows(u.atoms[:i]), windows(u.atoms[i:])...))
		}
	}
	r.add(alternatives...)
}

// decimal reports whether two atoms are a decimal number, which a unit may follow.
func decimal(atoms []atom) bool {
	return len(atoms) == 2 && atoms[0].number() && (atoms[1].number() || atoms[1].lead != 0) && atoms[1].sign == dotSign
}

var dotSign = hashOfSigns(".")

// decimal adds a decimal number. A source may have more digits than the claim. What looks like one may be a whole
// number whose digits are in groups.
func (r *claimReader) decimal(u *run) {
	fraction := leadingDigits(u.word(1))
	shown := strings.TrimRight(fraction, "0")
	if shown == "" {
		r.single(u, 0)
		return
	}
	alternatives := [][]uint64{windows(u.atoms), {decimalHash(&u.atoms[0], shown)}}
	if len(fraction) == groupDigits {
		alternatives = append(alternatives, []uint64{hashOf(leadingDigits(u.word(0)) + fraction)})
	}
	r.add(alternatives...)
}

// decimalHash returns the hash of a decimal number by its whole part and the digits of its fraction.
func decimalHash(whole *atom, fraction string) uint64 {
	return follow(whole.hash, dotSign, ^hashOf(fraction))
}

// single adds the claim of one atom, if it is one.
func (r *claimReader) single(u *run, i int) {
	a := &u.atoms[i]
	switch {
	case a.number():
		r.number(u, a)
	case a.lead != 0 && a.length-a.digits <= 3 && a.tail == 0: // with a unit
		if !small(leadingDigits(u.word(i))) {
			r.add([]uint64{a.hash}, []uint64{a.lead})
		}
	case isRef(u.word(i)):
		r.add([]uint64{a.hash})
	case a.digits > 0 && (a.length >= shortestID || a.hex && a.length >= shortestHash),
		a.snake && a.length >= shortestName, r.code && a.length >= 3:
		r.add([]uint64{a.hash})
	}
}

// isRef reports whether a word is the ref of a message, such as m57. One of the first 20 may be something else.
func isRef(word string) bool {
	digits, found := strings.CutPrefix(word, "m")
	return found && digits != "" && leadingDigits(digits) == digits && !small(digits)
}

// number adds a whole number.
func (r *claimReader) number(u *run, a *atom) {
	digits := leadingDigits(u.text[a.begin:a.end])
	groups, end := digitGroups(u.text, a)
	switch {
	case len(groups) > 0:
		r.skip = end
		divided := make([]uint64, 0, len(groups)+1)
		for _, g := range append([]string{digits}, groups...) {
			divided = append(divided, hashOf(g))
		}
		r.add([]uint64{hashOf(digits + strings.Join(groups, ""))}, divided)
	case !small(digits) && !r.isSeq(digits):
		r.add([]uint64{a.hash})
	}
}

// small reports whether a whole number may be a count of the writer's own.
func small(digits string) bool {
	n, err := strconv.Atoi(digits)
	return err == nil && n <= largestCount
}

// leadingDigits returns the digits with which a word begins, as 0 to 9.
func leadingDigits(word string) string {
	var b strings.Builder
	for _, r := range word {
		if r = atomRune(r); r == '_' {
			continue
		}
		if r < '0' || r > '9' {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

const groupDigits = 3

// digitGroups returns the groups of three digits that follow a number of up to three, and where they end.
func digitGroups(text string, a *atom) (groups []string, end int) {
	if !a.number() || a.length > groupDigits {
		return nil, 0
	}
	for end = a.end; ; {
		size := 0
		for _, separator := range []string{",", "'", "’", " ", "\u00a0", "\u202f", "٬"} {
			if strings.HasPrefix(text[end:], separator) {
				size = len(separator)
			}
		}
		digits := leadingDigits(text[end+size : min(end+size+groupDigits+1, len(text))])
		if size == 0 || len(digits) != groupDigits {
			return groups, end
		}
		groups, end = append(groups, digits), end+size+groupDigits
	}
}

// windows returns the hashes of pieces that together are all atoms.
func windows(atoms []atom) (all []uint64) {
	for len(atoms) > mostAtoms {
		all = append(all, joined(atoms[:mostAtoms]))
		atoms = atoms[mostAtoms/2:]
	}
	return append(all, joined(atoms))
}

// joined returns the hash of atoms with the signs between them.
func joined(atoms []atom) uint64 {
	h := atoms[0].hash
	for i := 1; i < len(atoms); i++ {
		h = follow(h, atoms[i].sign, atoms[i].hash)
	}
	return h
}
