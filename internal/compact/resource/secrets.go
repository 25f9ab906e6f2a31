package resource

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed secrets.txt
var secretsText string

// rule describes one kind of secret: a prefix at the beginning of a word, and a body of characters of a set.
type rule struct {
	prefix  string
	body    *set
	atLeast int
	// secret returns the part to hide of a text in which the prefix is at i and the body ends at end, to is 0 for none;
	// a nil secret hides all of it.
	secret func(text string, i, end int) (from, to int)
}

// rules returns all rules: those that need code, and those of secrets.txt.
func rules() []rule {
	all := []rule{
		{"AccountKey=", setOfBytes("A-Za-z0-9+/="), 40, afterPrefix("=")},                     // Azure
		{"SharedAccessKey=", setOfBytes("A-Za-z0-9+/="), 40, afterPrefix("=")},                // Azure
		{"hooks.slack.com/services/", setOfBytes("A-Za-z0-9/"), 40, afterPrefix("services/")}, // Slack
		{"eyJ", setOfBytes(""), 0, webToken},                                                  // JSON Web Tokens
		{"Bearer ", setOfBytes("A-Za-z0-9._~+/=-"), 16, bearerToken},                          // Authorization headers
		{"bearer ", setOfBytes("A-Za-z0-9._~+/=-"), 16, bearerToken},
		{"Basic ", setOfBytes("A-Za-z0-9+/="), 8, basicSecret},
		{"basic ", setOfBytes("A-Za-z0-9+/="), 8, basicSecret},
		{"discord.com/api/webhooks/", setOfBytes("A-Za-z0-9/_-"), 60, discordHook},
		{"discordapp.com/api/webhooks/", setOfBytes("A-Za-z0-9/_-"), 60, discordHook},
		{"sshpass -p", setOfBytes(""), 0, argumentSecret},
		{"password ", setOfBytes(""), 0, netrcSecret},
		{"--", setOfBytes(""), 0, flagSecret},
		{"-----BEGIN ", setOfBytes("A-Z "), len("PRIVATE KEY"), privateKey},  // PEM
		{"://", setOfBytes("A-Za-z0-9._~%!$&*+,;=:-"), len("u:p"), password}, // addresses with a password
	}
	for _, first := range []string{"MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"} { // of an id in base64
		all = append(all, rule{first, setOfBytes(""), 0, discordToken})
	}
	for row := range rows(secretsText) {
		atLeast, err := strconv.Atoi(row[0])
		if err != nil {
			panic(err) // the file is embedded
		}
		for prefix := range strings.SplitSeq(row[2], "|") {
			all = append(all, rule{prefix: prefix, body: setOfBytes(row[1]), atLeast: atLeast})
		}
	}
	return all
}

// set is a set of ASCII characters.
type set [256]bool

var (
	token      = setOfBytes("A-Za-z0-9_-") // base64 as addresses have it
	identifier = setOfBytes("A-Za-z0-9_")
)

// setOfBytes returns the set of characters and ranges; a hyphen at the end is a character.
func setOfBytes(ranges string) *set {
	var s set
	for i := 0; i < len(ranges); i++ {
		first, last := ranges[i], ranges[i]
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			last = ranges[i+2]
			i += 2
		}
		for b := int(first); b <= int(last); b++ {
			s[b] = true
		}
	}
	return &s
}

// afterPrefix returns a function that hides what follows the last part of the prefix and keeps the prefix readable.
func afterPrefix(last string) func(text string, i, end int) (from, to int) {
	return func(text string, i, end int) (from, to int) {
		return i + strings.Index(text[i:end], last) + len(last), end
	}
}

// webToken hides a token whose header and claims are JSON objects in base64. It searches only a short way for the end
// of the header, so that a text full of beginnings does not take long.
func webToken(text string, i, _ int) (from, to int) {
	end := token.end(text, i, 512)
	if !strings.HasPrefix(text[end:], ".eyJ") {
		return 0, 0
	}
	for end < len(text) && (token[text[end]] || text[end] == '.') {
		end++
	}
	return i, end
}

// bearerToken hides the text after Bearer, unless it may be a word.
func bearerToken(text string, i, end int) (from, to int) {
	from = i + len("Bearer ")
	if !strings.ContainsAny(text[from:end], "0123456789") {
		return 0, 0
	}
	return from, end
}

// privateKey hides the lines between the first and the last line of a key, or all lines if the key has no end.
func privateKey(text string, i, end int) (from, to int) {
	if !strings.HasSuffix(text[i:end], "PRIVATE KEY") && !strings.HasSuffix(text[i:end], "PRIVATE KEY BLOCK") {
		return 0, 0
	}
	from, to = min(end+len("-----"), len(text)), len(text)
	if n := strings.Index(text[from:], "-----END"); n >= 0 {
		to = from + n
	}
	if from == to {
		return 0, 0
	}
	return from, to
}

// password hides the password of user:password@host.
func password(text string, i, end int) (from, to int) {
	user, secret, found := strings.Cut(text[i+len("://"):end], ":")
	if !found || secret == "" || end == len(text) || text[end] != '@' {
		return 0, 0
	}
	return i + len("://") + len(user) + 1, end
}
