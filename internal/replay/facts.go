package replay

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// fact is a sentence or a line that was planted in a message.
type fact struct {
	kind    *factKind
	message int
	part    int    // its number in the message
	token   string // what distinguishes it: no other text has it
	found   int32  // the number of the token
}

// factKind is a kind of fact, and where it stands in a session.
type factKind struct {
	name  string
	in    place
	says  string // with the token for %s
	token func(word string, r *rand.Rand) string
}

// place is where a fact is planted.
type place uint8

const (
	inUser   place = iota // after a text of the user
	inAgent               // after a text of the agent
	inResult              // between two lines of a result
	inMiddle              // in the middle of a long result
)

// longResult is how many tokens a result has at least that has a middle.
const longResult = 1500

// factKinds are all kinds of facts. Each token is what an agent would have to know again.
var factKinds = []factKind{
	{"user constraint", inUser, "Please never write to the table %s, it is another team's.", withWord("billing_%s")},
	{"user fact", inUser, "By the way, the machine that all of this runs on is called %s.", withWord("%s-host")},
	{"user number", inUser, "The limit that we agreed on with them is %s requests a day.", number},
	{"decision", inAgent, "I decided to keep %s and to remove the older one.", withWord("load_%s")},
	{"plain statement", inAgent, "The value comes from %s, where it is read only once.", withWord("%sReader")},
	{"error", inResult, "ERROR: %s: connection refused after 3 attempts", withWord("E_%s")},
	{"port", inResult, "listening on 127.0.0.1:%s", func(_ string, r *rand.Rand) string {
		return strconv.Itoa(49152 + r.IntN(16000))
	}},
	{"value in the middle", inMiddle, "retry_budget = %s", withWord("%s_9")},
	{"id", inResult, "created job %s", func(word string, r *rand.Rand) string {
		return fmt.Sprintf("%s-%04x", word[:3], r.Uint32()&0xffff|0x1000)
	}},
	{"path", inResult, "see internal/%s for the rest", func(word string, _ *rand.Rand) string {
		return word + "/" + word[1:] + "_sync.go"
	}},
}

func withWord(format string) func(string, *rand.Rand) string {
	return func(word string, _ *rand.Rand) string { return fmt.Sprintf(format, word) }
}

func number(_ string, r *rand.Rand) string { return strconv.Itoa(100_000 + r.IntN(900_000)) }

// FactKinds lists the kinds of facts that Plant plants.
func FactKinds() (names []string) {
	for i := range factKinds {
		names = append(names, factKinds[i].name)
	}
	return names
}

// Plant returns a copy of the session with facts of all kinds in its first two thirds, each where such a sentence or
// line stands by nature; a kind that has no place there is left out. The same seed, from 1, gives the same facts.
//
// Errors: that of a message that cannot be read.
func (s *Session) Plant(seed int) (*Session, error) {
	name := fnv.New64a()
	name.Write([]byte(s.Name))
	p := planter{
		Session: &Session{Name: s.Name, Format: s.Format, Messages: slices.Clone(s.Messages), seed: seed},
		random:  rand.New(rand.NewPCG(name.Sum64(), uint64(seed))),
	}
	if err := p.read(); err != nil {
		return nil, err
	}
	for i := range factKinds {
		if err := p.plant(&factKinds[i]); err != nil {
			return nil, err
		}
	}
	return p.Session, nil
}

// planter plants facts in a session.
type planter struct {
	*Session
	random *rand.Rand
	places map[place][]spot
	used   []int // messages that have a fact
}

// spot is a part in which a fact can stand.
type spot struct{ message, part int }

// read finds the places in the first two thirds of the session.
func (p *planter) read() error {
	p.places = map[place][]spot{}
	all, before := p.Tokens(), int64(0)
	for i := range p.Messages {
		m := &p.Messages[i]
		if before += int64(m.Tokens); 3*before > 2*all {
			return nil
		}
		found, err := wire.Inspect(p.Format, m.Body)
		if err != nil {
			return fmt.Errorf("%s: message %d: %w", p.Name, m.Seq, err)
		}
		for k := range found.Parts {
			at := &found.Parts[k]
			for _, where := range placesOf(&found, at, m.Body) {
				p.places[where] = append(p.places[where], spot{i, k})
			}
		}
	}
	return nil
}

// placesOf returns what a part has room for.
func placesOf(found *wire.Facts, at *wire.Part, body []byte) []place {
	if longest(body, at.Value).End == 0 {
		return nil
	}
	switch {
	case at.Kind == wire.Result && at.Tokens >= longResult:
		return []place{inResult, inMiddle}
	case at.Kind == wire.Result:
		return []place{inResult}
	case at.Kind == wire.Text && isAssistant(found):
		return []place{inAgent}
	case at.Kind == wire.Text && found.Role == "user" && !machine.Match(at.Value.Of(body)[1:]):
		return []place{inUser}
	}
	return nil
}

// longest returns the longest string literal of a JSON value, the zero Span for none.
func longest(body []byte, value rawjson.Span) (best rawjson.Span) {
	if value.End == 0 {
		return best
	}
	longer := func(found rawjson.Span) {
		if found.End-found.Start > best.End-best.Start {
			best = found
		}
	}
	switch body[value.Start] {
	case '"':
		return value
	case '[':
		for element := range rawjson.Elements(body, value.Start) {
			longer(longest(body, element))
		}
	case '{':
		for _, member := range rawjson.Members(body, value.Start) {
			longer(longest(body, member))
		}
	}
	return best
}

// plant plants a fact in a message that has none yet.
func (p *planter) plant(kind *factKind) error {
	free := slices.DeleteFunc(slices.Clone(p.places[kind.in]), func(s spot) bool {
		return slices.Contains(p.used, s.message)
	})
	if len(free) == 0 {
		return nil
	}
	at := free[p.random.IntN(len(free))]
	token := kind.token(p.word(), p.random)
	m := &p.Messages[at.message]
	found, err := wire.Inspect(p.Format, m.Body)
	if err != nil {
		return err
	}
	part := &found.Parts[at.part]
	literal := longest(m.Body, part.Value)
	text, _ := rawjson.Unquote(nil, literal.Of(m.Body))
	text = p.insert(text, fmt.Sprintf(kind.says, token), kind.in)
	m.Body = wire.Replace(nil, m.Body, []wire.Edit{{Span: literal, With: rawjson.Quote(nil, text)}})
	if found, err = wire.Inspect(p.Format, m.Body); err != nil {
		return err
	}
	m.Tokens = found.Tokens
	p.used = append(p.used, at.message)
	p.facts = append(p.facts, fact{kind: kind, message: at.message, part: part.Index, token: token})
	return nil
}

// word returns a word that no text has.
func (p *planter) word() string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var word []byte
	for range 4 {
		word = append(word, consonants[p.random.IntN(len(consonants))], vowels[p.random.IntN(len(vowels))])
	}
	return string(word)
}

// insert puts a sentence behind a text, or a line between two lines of it.
func (p *planter) insert(text []byte, says string, where place) []byte {
	if where == inUser || where == inAgent {
		return fmt.Appendf(text, " %s", says)
	}
	from := len(text) / 2
	if where == inResult {
		from = p.random.IntN(len(text) + 1)
	}
	line := bytes.IndexByte(text[from:], '\n')
	if line < 0 {
		return fmt.Appendf(text, "\n%s", says)
	}
	return slices.Insert(text, from+line+1, []byte(says+"\n")...)
}

// fates follows the facts of a session.
type fates struct {
	facts []fact
	list  []Fate
}

// follow adds what a view has of the facts that were planted in messages that it covers.
func (l *life) follow(f *fates) {
	appended := l.view.tail + len(l.tail)
	for i := range f.facts {
		at := &f.facts[i]
		if at.message >= appended {
			continue
		}
		held := l.holds(at.found)
		f.list[i].Views = append(f.list[i].Views, held)
		f.list[i].Recall = append(f.list[i].Recall, held || l.recalls(at))
	}
}

// messageRefs finds the refs of messages in a view.
var messageRefs = regexp.MustCompile(`\bm(\d+)(?:-(\d+))?\b`)

// recalls reports whether the view shows a ref that brings a fact back: that of its part, or that of a range of
// messages that has its message.
func (l *life) recalls(at *fact) bool {
	seq := l.session.Messages[at.message].Seq
	own := fmt.Appendf(nil, "r%d.%d-", seq, at.part)
	if bytes.Contains(l.cut[int32(at.message)], own) {
		return true
	}
	if l.base == nil {
		return false
	}
	if bytes.Contains(l.base.Body, own) {
		return true
	}
	for _, m := range messageRefs.FindAllSubmatch(l.base.Body, -1) {
		if first, last := rangeOf(string(m[1]), string(m[2])); first <= seq && seq <= last {
			return true
		}
	}
	return false
}

// rangeOf returns the seqs that a ref covers: from the first number to the second one, if there is one.
func rangeOf(from, to string) (first, last int64) {
	first, _ = strconv.ParseInt(from, 10, 64)
	last, err := strconv.ParseInt(to, 10, 64)
	if err != nil {
		return first, first
	}
	return first, last
}
