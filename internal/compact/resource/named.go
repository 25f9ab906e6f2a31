package resource

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"math"
	"strings"
)

//go:embed named.txt
var namedText string

// naming says how the value of a name is told from what is no secret.
type naming uint8

const (
	harmless naming = iota
	strictName
	randomName
	headerName
	basicName
)

// ending is how the names of secrets end.
type ending struct {
	text string
	kind naming
}

// namedEndings are the suffixes in groups of the same last two letters, which groupOfEnding knows, 0 for none: for
// nearly all names this one look-up is enough. userFlags are the flags before user:password.
var (
	namedEndings, userFlags = readSuffixes()
	groupOfEnding           [1 << 16]uint8
)

func readSuffixes() (suffixes [][]ending, flags []string) {
	kinds := map[string]naming{
		"never": harmless, "strict": strictName, "random": randomName, "header": headerName, "basic": basicName,
	}
	suffixes = [][]ending{nil}
	for _, first := range []bool{true, false} { // what is never a secret is looked for first
		for row := range rows(namedText) {
			if (row[0] == "never") != first {
				continue
			}
			if row[0] == "flag" {
				flags = row[1:]
				continue
			}
			for _, text := range row[1:] {
				group := &groupOfEnding[pair(text, len(text)-2)]
				if *group == 0 {
					*group = uint8(len(suffixes))
					suffixes = append(suffixes, nil)
				}
				suffixes[*group] = append(suffixes[*group], ending{text, kinds[row[0]]})
			}
		}
	}
	return suffixes, flags
}

// How far a name and a value are looked for, so that a text full of separators does not take long.
const (
	maxName  = 64
	maxValue = 512
)

// namedSecret returns the value behind the separator at i, an equals sign or a colon, if the name before it is that of
// a secret: an assignment, a header, a flag, a member of JSON or YAML, a row of .pgpass, curl -u user:password.
func namedSecret(text string, i int) (from, to int) {
	if i == 0 || isComparison(text, i) {
		return 0, 0
	}
	if end := nameEnd(text, i); !isAddress(text, i) && groupOfEnding[lastLetters(text[max(end-maxName, 0):end])] == 0 {
		return 0, 0 // nearly always
	}
	name, before := nameBefore(text, i)
	if name == "" {
		return 0, 0
	}
	kind := kindOf(name)
	if kind == harmless {
		return loginSecret(text, i, name, before)
	}
	from, to, quoted := valueAfter(text, i)
	value := text[from:to]
	switch kind {
	case strictName:
		from, to = withoutScheme(text, from, to)
		return secretIf(isPassword(text[from:to]) && (quoted || !isCode(text, to)), from, to)
	case randomName:
		from, to = withoutScheme(text, from, to)
		return secretIf(isRandom(text[from:to]), from, to)
	case headerName:
		return secretIf(strings.ContainsAny(value, "0123456789"), from, lineEnd(text, from))
	}
	return secretIf(isUserPassword(value), from, to)
}

// loginSecret returns the value behind the separator at i if it is a colon between a user and a password, or a bot and
// its token.
func loginSecret(text string, i int, name, before string) (from, to int) {
	if !isAddress(text, i) {
		return 0, 0
	}
	user := isGivenUser(name, before) || strings.HasSuffix(before, ":") && isPgpass(text, i)
	bot := isBot(name)
	if !user && !bot {
		return 0, 0
	}
	from, to, _ = valueAfter(text, i)
	value := text[from:to]
	return secretIf(user && isPassword(value) || bot && isBotToken(value), from, to)
}

func secretIf(is bool, from, to int) (int, int) {
	if !is {
		return 0, 0
	}
	return from, to
}

// isAddress reports whether a colon at i is directly between a name and a value, which is no path.
func isAddress(text string, i int) bool {
	return text[i] == ':' && nameBytes[text[i-1]] && i+1 < len(text) && nameBytes[text[i+1]]
}

func isComparison(text string, i int) bool {
	return text[i] == '=' && (comparing[text[i-1]] || i+1 < len(text) && text[i+1] == '=')
}

var (
	comparing   = setOf("=!<>")
	nameBytes   = setOfBytes("A-Za-z0-9_.-")
	joins       = setOf("_-.")         // between the words of a name
	beforeColon = setOf(" \t\"'`\\:]") // that may be between a name and its separator
	afterColon  = setOf(" \t=>\\")
	quotes      = setOf("\"'`")
	valueEnds   = setOf(" \t\r\n\"'`,;)}]<>&|\\")
	beforeUser  = setOf(" '\"=")
	beforeHost  = setOf(" \t\r\n\"'")
	lineEnds    = setOf("\r\n\"'\\")
)

func setOf(characters string) *set {
	var s set
	for _, b := range []byte(characters) {
		s[b] = true
	}
	return &s
}

// until returns where the first byte of a set is, from a place on and at most maxValue bytes further.
func (s *set) until(text string, from int) int {
	end := min(len(text), from+maxValue)
	for i := from; i < end; i++ {
		if s[text[i]] {
			return i
		}
	}
	return end
}

// end returns where the bytes of a set end that begin at a place, max bytes further at most.
func (s *set) end(text string, from, max int) int {
	end := from
	for end < min(len(text), from+max) && s[text[end]] {
		end++
	}
	return end
}

// nameBefore returns the name before a separator, and the text before that. Quotes and blanks may be between.
func nameBefore(text string, i int) (name, before string) {
	end := nameEnd(text, i)
	start := end
	for start > 0 && end-start < maxName && nameBytes[text[start-1]] {
		start--
	}
	return text[start:end], text[:start]
}

// nameEnd returns where the name before a separator ends.
func nameEnd(text string, i int) int {
	end := i
	for end > 0 && i-end < 16 && beforeColon[text[end-1]] {
		end--
	}
	return end
}

// valueAfter returns where the value behind a separator is: inside quotes, or up to the next blank or bracket.
func valueAfter(text string, i int) (from, to int, quoted bool) {
	from = min(i+1, len(text))
	for from < len(text) && from-i <= 16 {
		if text[from-1] == '\\' && strings.HasPrefix(text[from:], "u003e") {
			from += len("u003e") // of =>, as JSON has it
		} else if !afterColon[text[from]] {
			break
		} else {
			from++
		}
	}
	if from == len(text) || !quotes[text[from]] {
		return from, valueEnds.until(text, from), false
	}
	from++
	to = min(len(text), from+maxValue)
	if n := strings.IndexAny(text[from:to], "\r\n\\"+text[from-1:from]); n >= 0 {
		to = from + n
	}
	return from, to, true
}

// kindOf returns how the values of a name are told.
func kindOf(name string) naming {
	group := groupOfEnding[lastLetters(name)]
	if group == 0 || joins[name[len(name)-1]] {
		return harmless
	}
	var room [maxName]byte
	plain := room[:0]
	for _, c := range []byte(name) {
		if !joins[c] {
			plain = append(plain, lower(c))
		}
	}
	for _, e := range namedEndings[group] {
		exact := e.kind != basicName && e.kind != headerName || len(plain) == len(e.text)
		if exact && bytes.HasSuffix(plain, []byte(e.text)) {
			return e.kind
		}
	}
	return harmless
}

// lastLetters returns the last two letters of the name that a text ends with, as pair does, in lower case.
func lastLetters(name string) (last int) {
	found := 0
	for i := len(name) - 1; i >= 0 && found < 2 && nameBytes[name[i]]; i-- {
		if c := name[i]; !joins[c] {
			last |= int(lower(c)) << (8 * found)
			found++
		}
	}
	return last
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// withoutScheme returns the value behind the scheme of an Authorization header. The rules of Bearer and Basic know
// theirs better.
func withoutScheme(text string, from, to int) (int, int) {
	switch scheme := strings.ToLower(text[from:to]); scheme {
	case "token", "apikey", "bot":
		next, end, _ := valueAfter(text, to)
		return next, end
	}
	return from, to
}

// placeholders stand where a secret would.
var placeholders = []string{"$", "{", "<", "%", "*", "/", "./", "http:", "https:", "env.", "os.", "process.", "xxx"}

// isPassword reports whether a value is no word, no number and no placeholder.
func isPassword(value string) bool {
	const shortest = 6
	if len(value) < shortest || isPlaceholder(value) {
		return false
	}
	letters, others := 0, 0
	for i := range len(value) {
		c := value[i] | 0x20
		switch {
		case c >= 'a' && c <= 'z':
			letters++
		case strings.IndexByte(" _.-\r,()", value[i]) < 0:
			others++
		}
	}
	return letters > 0 && others > 0 && !strings.ContainsAny(value, " ([{")
}

func isPlaceholder(value string) bool {
	for _, p := range placeholders {
		if len(value) >= len(p) && strings.EqualFold(value[:len(p)], p) {
			return true
		}
	}
	return strings.Contains(value, "${") || strings.Contains(value, "...")
}

// isCode reports whether a value continues as a call or an index does.
func isCode(text string, end int) bool {
	return end < len(text) && strings.IndexByte("([", text[end]) >= 0
}

// isRandom reports whether a value looks random: letters and digits of which few repeat.
func isRandom(value string) bool {
	const (
		shortest = 16
		entropy  = 3 // bits a character
	)
	value = strings.TrimRight(value, "=")
	if len(value) < shortest || isPlaceholder(value) || strings.ContainsAny(value, " ([{") {
		return false
	}
	var seen [256]int
	letters, digits := 0, 0
	for i := range len(value) {
		seen[value[i]]++
		c := value[i] | 0x20
		switch {
		case c >= 'a' && c <= 'z':
			letters++
		case value[i] >= '0' && value[i] <= '9':
			digits++
		}
	}
	return letters > 0 && digits > 1 && entropyOf(&seen, len(value)) >= entropy
}

// entropyOf returns the Shannon entropy of a text by how often each byte is in it, in bits.
func entropyOf(seen *[256]int, size int) (bits float64) {
	for _, n := range seen {
		if n > 0 {
			share := float64(n) / float64(size)
			bits -= share * math.Log2(share)
		}
	}
	return bits
}

// isUserPassword reports whether a value is user:password in base64.
func isUserPassword(value string) bool {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	if err != nil || len(decoded) < len("u:pw") {
		return false
	}
	for _, c := range decoded {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return strings.Contains(string(decoded), ":")
}

// isGivenUser reports whether a name is a user's on a command line, behind -u or --user.
func isGivenUser(name, before string) bool {
	if strings.HasPrefix(name, "-u") && strings.HasSuffix(before, " ") {
		return true
	}
	for before != "" && beforeUser[before[len(before)-1]] {
		before = before[:len(before)-1]
	}
	for _, flag := range userFlags {
		if strings.HasSuffix(before, flag) && (len(before) == len(flag) || before[len(before)-len(flag)-1] == ' ') {
			return true
		}
	}
	return false
}

// isPgpass reports whether the colon at i is the last of host:port:database:user:password.
func isPgpass(text string, i int) bool {
	first := i
	colons := 0
	for ; first > max(0, i-2*maxName) && !beforeHost[text[first-1]]; first-- {
		switch text[first-1] {
		case ':':
			colons++
		case '/', '\\':
			return false
		}
	}
	if colons != 3 {
		return false
	}
	host, rest, _ := strings.Cut(text[first:i], ":")
	port, _, _ := strings.Cut(rest, ":")
	isPort := len(port) >= 4 && strings.Trim(port, "0123456789") == ""
	return host != "" && (port == "*" || isPort)
}

// isBot reports whether a name is the number of a bot of Telegram, as its addresses and its tokens have it.
func isBot(name string) bool {
	name = strings.TrimPrefix(name, "bot")
	if len(name) < 8 {
		return false
	}
	for _, c := range []byte(name) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// isBotToken reports whether what is behind the colon of a bot's number is the rest of its token.
func isBotToken(value string) bool {
	const secret = 35
	return strings.HasPrefix(value, "AA") && len(value) >= secret && strings.Trim(value[:secret], "-_") != "" &&
		!strings.ContainsAny(value[:secret], " /.:")
}

// flagSecret hides the value behind a flag that is named like a secret: --password value.
func flagSecret(text string, i, _ int) (from, to int) {
	if i > 0 && text[i-1] == '-' {
		return 0, 0 // a line of hyphens
	}
	end := token.end(text, i, maxName)
	if end == len(text) || text[end] != ' ' {
		return 0, 0
	}
	kind := kindOf(text[i:end])
	from, to, _ = valueAfter(text, end)
	value := text[from:to]
	return secretIf(kind == strictName && isPassword(value) || kind == randomName && isRandom(value), from, to)
}

// argumentSecret hides what follows the prefix up to the next blank, or in quotes.
func argumentSecret(text string, _, end int) (from, to int) {
	from, to, _ = valueAfter(text, end-1)
	return secretIf(to-from >= 4 && !isPlaceholder(text[from:to]), from, to)
}

// netrcSecret hides the password of a row of .netrc.
func netrcSecret(text string, i, end int) (from, to int) {
	if !strings.Contains(text[max(0, i-2*maxName):i], "login ") {
		return 0, 0
	}
	return argumentSecret(text, i, end)
}

// basicSecret hides user:password in base64 behind Basic.
func basicSecret(text string, i, end int) (from, to int) {
	from = i + len("Basic ")
	return secretIf(isUserPassword(text[from:end]), from, end)
}

// discordHook hides what follows the number of a webhook.
func discordHook(text string, i, end int) (from, to int) {
	from = strings.LastIndexByte(text[i:end], '/') + i + 1
	return secretIf(end-from >= 30, from, end)
}

// discordToken hides a bot's token: an id, a time and a digest in base64 with points between.
func discordToken(text string, i, _ int) (from, to int) {
	id := token.end(text, i, 29)
	if id-i < 24 || id-i > 28 || !strings.HasPrefix(text[id:], ".") {
		return 0, 0
	}
	time := token.end(text, id+1, 7)
	if time-id != 7 || !strings.HasPrefix(text[time:], ".") {
		return 0, 0
	}
	to = token.end(text, time+1, maxValue)
	return secretIf(to-time > 27, i, to)
}

// lineEnd returns where the line or the quoted text ends that begins at from.
func lineEnd(text string, from int) int { return lineEnds.until(text, from) }
