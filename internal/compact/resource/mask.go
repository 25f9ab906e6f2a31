package resource

import (
	"strings"
	"unsafe"
)

// Mask returns a text without secrets of well-known forms: keys with an issuer's prefix, tokens, private keys,
// passwords in addresses, and the values of names that secrets have. It replaces a secret by stars, more for longer
// ones, and by its last four characters if it has sixteen or more. Mask a text before cutting it, because half a secret
// is not recognised.
func Mask(text string) string {
	masked, _ := mask(text)
	return masked
}

// MaskBytes returns a text as Mask does: the bytes themselves, if there are no secrets in them.
func MaskBytes(text []byte) []byte {
	// No copy of the bytes: rules only read, and nothing but what mask copies from them is left when it has returned.
	masked, found := mask(unsafe.String(unsafe.SliceData(text), len(text)))
	if !found {
		return text
	}
	return []byte(masked)
}

func mask(text string) (masked string, found bool) {
	var out strings.Builder
	kept := 0
	for i := 0; i+1 < len(text); i++ {
		if i = nextBeginning(text, i); i == len(text) {
			break
		}
		if from, to := findSecret(ruleGroups[groupOf[pair(text, i)]], text, i); to > 0 {
			out.WriteString(text[kept:from])
			out.WriteString(stars(text[from:to]))
			kept = to
			i = to - 1
		}
	}
	if kept == 0 {
		return text, false
	}
	out.WriteString(text[kept:])
	return out.String(), true
}

// nextBeginning returns where the next three bytes are, from i on, with which a secret may begin, or the text's length.
func nextBeginning(text string, i int) int {
	before := uint16(text[i])
	for k := i + 1; k < len(text); k++ {
		both := before<<8 | uint16(text[k])
		if begins[both>>6]>>(both&63)&1 == 0 {
			before = both & 0xFF
			continue
		}
		if k+1 == len(text) || thirds[groupOf[both]][text[k+1]] {
			return k - 1
		}
		before = both & 0xFF
	}
	return len(text)
}

// findSecret returns the secret that begins at i, to is 0 for none.
func findSecret(rules []rule, text string, i int) (from, to int) {
	for k := range rules {
		if from, to = rules[k].find(text, i); to > 0 {
			return from, to
		}
	}
	if text[i] == '=' || text[i] == ':' {
		return namedSecret(text, i)
	}
	return 0, 0
}

// stars returns the replacement of a secret: three stars, and three more from 32, 64 and 128 characters on.
func stars(secret string) string {
	if len(secret) < 16 {
		return "***"
	}
	n := 3
	for length := 32; length <= min(len(secret), 128); length *= 2 {
		n += 3
	}
	return strings.Repeat("*", n) + strings.ToValidUTF8(secret[len(secret)-4:], "")
}

// find returns the part to hide if the prefix is at i; to is 0 if it is not, or if no secret follows.
func (r *rule) find(text string, i int) (from, to int) {
	end := i + len(r.prefix)
	if end > len(text) || text[end-1] != r.prefix[len(r.prefix)-1] { // nearly always
		return 0, 0
	}
	if text[i:end] != r.prefix || insideWord(text, i) {
		return 0, 0
	}
	for end < len(text) && r.body[text[end]] {
		end++
	}
	if end-i-len(r.prefix) < r.atLeast {
		return 0, 0
	}
	if r.secret != nil {
		return r.secret(text, i, end)
	}
	return i, end
}

// insideWord reports whether the byte at i is inside a word. An escaped line break, as in JSON, ends a word.
func insideWord(text string, i int) bool {
	if i == 0 || !identifier[text[i]] || !identifier[text[i-1]] {
		return false
	}
	return i == 1 || text[i-2] != '\\' || !strings.Contains("nrt", text[i-1:i])
}

// groupOf has the group of rules whose prefixes begin with a pair of bytes, 0 for none: for nearly all positions of a
// text this one look-up is enough.
var groupOf [1 << 16]uint8

// begins has a bit for each pair that has a group: it is small enough to stay at hand while a text is read.
var begins = func() (table [1 << 10]uint64) {
	_ = ruleGroups // which fill groupOf
	for both, group := range groupOf {
		if group != 0 {
			table[both>>6] |= 1 << (both & 63)
		}
	}
	return table
}()

// thirds has the third bytes of the prefixes of a group. It spares the rules most words that begin as a prefix does.
var (
	ruleGroups = groupRules()
	thirds     = thirdBytes(ruleGroups)
)

func thirdBytes(groups [][]rule) []set {
	third := make([]set, len(groups))
	for i, group := range groups {
		every := len(group) == 0 // behind a separator may be any value
		for _, r := range group {
			if len(r.prefix) == 2 || r.prefix[0] == '=' || r.prefix[0] == ':' {
				every = true
			} else {
				third[i][r.prefix[2]] = true
			}
		}
		for b := range third[i] {
			third[i][b] = third[i][b] || every
		}
	}
	return third
}

func pair(text string, i int) int { return int(text[i])<<8 | int(text[i+1]) }

func groupRules() [][]rule {
	groups := [][]rule{nil}
	for _, r := range rules() {
		group := &groupOf[pair(r.prefix, 0)]
		if *group == 0 {
			*group = uint8(len(groups))
			groups = append(groups, nil)
		}
		groups[*group] = append(groups[*group], r)
	}
	return withNames(groups)
}

// withNames adds a group without rules for every other pair that begins with a separator: behind it may be a secret
// that is told by its name.
func withNames(groups [][]rule) [][]rule {
	for _, separator := range []byte{'=', ':'} {
		for second := range 256 {
			group := &groupOf[int(separator)<<8|second]
			if *group == 0 {
				*group = uint8(len(groups))
			}
		}
	}
	return append(groups, nil)
}
