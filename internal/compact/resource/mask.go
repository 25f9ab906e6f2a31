package resource

import "strings"

// Mask hides secrets of well-known shapes: keys that their issuers mark by a prefix, tokens, private keys, and passwords
// in addresses. A secret becomes stars, the more the longer it is, and its last four characters if it has sixteen or
// more. Mask a text before it is cut: half a secret looks like none.
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
			kept, i = to, to-1
		}
	}
	if kept == 0 {
		return text
	}
	return out.String() + text[kept:]
}

func findSecret(rules []rule, text string, i int) (from, to int) {
	for _, r := range rules {
		if from, to = r.find(text, i); to > 0 {
			return from, to
		}
	}
	return 0, 0
}

// stars stand for a secret: three, and three more from 32, 64 and 128 characters on.
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

// rule is how one kind of secret looks: a prefix, where a word begins, and a body of at least so many characters of a set.
type rule struct {
	prefix  string
	body    *set
	atLeast int
	// secret tells what to hide of a text in which the prefix is at i and the body ends at end; nil is all of that.
	secret func(text string, i, end int) (from, to int)
}

// find returns what to hide where the prefix stands at i; to is 0 if it does not, or if what follows is no secret.
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

// insideWord reports whether the byte at i is not the first of its word. An escaped line break, as in JSON, ends a word.
func insideWord(text string, i int) bool {
	if i == 0 || !identifier[text[i]] || !identifier[text[i-1]] {
		return false
	}
	return i == 1 || text[i-2] != '\\' || !strings.Contains("nrt", text[i-1:i])
}

// groupOf gives the group of rules whose prefixes begin with a pair of bytes, 0 for none: most of a text is passed over
// by one look at this table.
var groupOf [1 << 16]uint8

var ruleGroups = groupRules()

func pair(text string, i int) int { return int(text[i])<<8 | int(text[i+1]) }

func groupRules() [][]rule {
	groups := [][]rule{nil}
	for _, k := range kinds {
		for prefix := range strings.SplitSeq(k.prefixes, "|") {
			group := &groupOf[pair(prefix, 0)]
			if *group == 0 {
				*group = uint8(len(groups))
				groups = append(groups, nil)
			}
			groups[*group] = append(groups[*group], rule{prefix, k.body, k.atLeast, k.secret})
		}
	}
	return groups
}
