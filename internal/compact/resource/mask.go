package resource

import "strings"

// Mask returns a text without secrets of well-known forms: keys with an issuer's prefix, tokens, private keys,
// passwords in addresses, and the values of names that secrets have. It replaces a secret by stars, more for longer
// ones, and by its last four characters if it has sixteen or more. Mask a text before cutting it, because half a secret
// is not recognised.
func Mask(text string) string {
	var out strings.Builder
	kept := 0
	for i := 0; i+1 < len(text); i++ {
		group := groupOf[pair(text, i)]
		if group == 0 {
			continue
		}
		if from, to := findSecret(ruleGroups[group], text, i); to > 0 {
			out.WriteString(text[kept:from])
			out.WriteString(stars(text[from:to]))
			kept = to
			i = to - 1
		}
	}
	if kept == 0 {
		return text
	}
	return out.String() + text[kept:]
}

// findSecret returns the secret that begins at i, to is 0 for none.
func findSecret(rules []rule, text string, i int) (from, to int) {
	for _, r := range rules {
		if from, to = r.find(text, i); to > 0 {
			return from, to
		}
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
func (r rule) find(text string, i int) (from, to int) {
	if !strings.HasPrefix(text[i:], r.prefix) || insideWord(text, i) {
		return 0, 0
	}
	end := i + len(r.prefix)
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

var ruleGroups = groupRules()

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

// withNames adds the rule of secrets that are told by their names to every pair that begins with a separator.
func withNames(groups [][]rule) [][]rule {
	for _, separator := range []string{"=", ":"} {
		named := rule{prefix: separator, body: setOfBytes(""), secret: func(text string, i, _ int) (from, to int) {
			return namedSecret(text, i)
		}}
		alone := uint8(len(groups))
		groups = append(groups, []rule{named})
		for second := range 256 {
			group := &groupOf[int(separator[0])<<8|second]
			if *group == 0 {
				*group = alone
			} else {
				groups[*group] = append(groups[*group], named)
			}
		}
	}
	return groups
}
