package units

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Alias returns an id of at most max characters for one that a provider does not take: how that begins, in letters,
// digits, _ and -, and ten digits of its hash. n distinguishes the aliases of equal ids. Views have aliases, so a
// result may come under one: a Pairer knows which call it is of.
func Alias(begin, id string, n, max int) string {
	if begin == "" {
		begin = "call"
	}
	return begin[:min(len(begin), max-aliasDigits-1)] + "_" + hexDigits(id, n)
}

// PlainAlias returns an alias of length letters and digits alone.
func PlainAlias(id string, n, length int) string {
	sum := digest(id, n)
	out := make([]byte, length)
	for i, b := range sum[:length] {
		out[i] = alphabet[int(b)%len(alphabet)]
	}
	return string(out)
}

const (
	alphabet    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	aliasDigits = 10
	plainAlias  = 9 // the length of a PlainAlias that a Pairer knows again: Mistral's
	aliasReach  = 4 // how many aliases of equal ids a Pairer knows again
)

func digest(id string, n int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s#%d", id, n))
}

func hexDigits(id string, n int) string {
	sum := digest(id, n)
	return hex.EncodeToString(sum[:aliasDigits/2])
}

// MayBeAlias reports whether an id has the form of an alias.
func MayBeAlias(id string) bool { return aliasKey(id) != "" }

// aliasKey returns by what an alias is found: its digits, or all of a plain one; "" for another id.
func aliasKey(id string) string {
	if len(id) == plainAlias && strings.Trim(id, alphabet) == "" {
		return id
	}
	at := strings.LastIndexByte(id, '_') + 1
	if at == 0 || len(id)-at != aliasDigits || strings.Trim(id[at:], "0123456789abcdef") != "" {
		return ""
	}
	return id[at:]
}

// original returns the id of a waiting call that an id is an alias of. It looks at the calls so far when the first
// result comes that may have an alias: nearly no session has any.
func (p *Pairer[C]) original(alias string) (id string, ok bool) {
	key := aliasKey(alias)
	if key == "" {
		return "", false
	}
	if p.aliases == nil {
		p.aliases = map[string]string{}
		for id := range p.calls {
			p.alias(id)
		}
	}
	id, ok = p.aliases[key]
	return id, ok
}

// alias records the aliases of an id.
func (p *Pairer[C]) alias(id string) {
	for n := range aliasReach {
		p.aliases[hexDigits(id, n)] = id
		p.aliases[PlainAlias(id, n, plainAlias)] = id
	}
}
