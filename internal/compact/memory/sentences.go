package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/names"
)

// mostDecided is how many sentences are remembered at most.
const mostDecided = 512

// Decide adds a sentence of the agent.
func (m *Memory) Decide(seq int64, sentence string) {
	m.decided = append(m.decided, words{seq: seq, text: sentence})
	m.decided = m.decided[max(len(m.decided)-mostDecided, 0):]
}

// Decided returns those of these sentences that say most, in no more than room tokens: of the evicted messages, and
// without those that already says. Those of one message are one line. What is not chosen is forgotten.
func (m *Memory) Decided(room int, evicted func(seq int64) bool, already string) string {
	keep := make([]bool, len(m.decided))
	asking := make([]decision, 0, len(m.decided))
	for i := range m.decided {
		w := &m.decided[i]
		if keep[i] = !evicted(w.seq) || contains(already, w.text); !keep[i] {
			asking = append(asking, m.decisionOf(i))
		}
	}
	slices.SortFunc(asking, func(a, b decision) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(b.at, a.at))
	})
	chosen, told := make([]bool, len(m.decided)), map[int64]bool{}
	for _, d := range asking {
		seq := m.decided[d.at].seq
		if told[seq] {
			d.size -= tokensOfRef
		}
		if d.size <= room {
			room -= d.size
			chosen[d.at], keep[d.at] = true, true
			told[seq] = true
		}
	}
	kept := make([]words, 0, len(m.decided))
	var lines []string
	said := int64(0)
	for i, w := range m.decided {
		if keep[i] {
			kept = append(kept, w)
		}
		switch {
		case !chosen[i]:
		case w.seq == said:
			lines[len(lines)-1] += " " + w.text
		default:
			lines = append(lines, fmt.Sprintf("[m%d] %s", w.seq, w.text))
			said = w.seq
		}
	}
	m.decided = kept
	return strings.Join(lines, "\n")
}

// contains reports whether a text has another one, which may be long. It looks for its beginning, which is so short
// that many bytes are compared at once.
func contains(text, part string) bool {
	const quick = 32
	if len(part) <= quick {
		return strings.Contains(text, part)
	}
	for len(text) >= len(part) {
		i := strings.Index(text[:len(text)-len(part)+quick], part[:quick])
		if i < 0 {
			return false
		}
		if text = text[i:]; text[:len(part)] == part {
			return true
		}
		text = text[1:]
	}
	return false
}

// decision is a sentence that may be chosen.
type decision struct {
	at, size int
	worth    float64
}

// decisionOf returns a sentence with what it is worth.
func (m *Memory) decisionOf(i int) decision {
	w := &m.decided[i]
	all := m.reading().sentences
	d, known := all[w.text]
	if !known {
		d = decision{size: w.tokens(), worth: m.worthOfSentence(w)}
		all[w.text] = d
	}
	d.at = i
	return d
}

// decisive are words, and pairs of them, with which the agent says what it found or decided.
var decisive = func() map[string]bool {
	all := map[string]bool{}
	for words := range strings.SplitSeq("decide|decided|instead of|because|root cause|should|must|need to|needs to|"+
		"found|turn out|turns out|so that|rather than", "|") {
		all[words] = true
	}
	for what := range strings.FieldsSeq("issue problem bug cause fix") {
		all[what+" is"], all[what+" was"] = true, true
	}
	return all
}()

// decides reports whether the agent says in a sentence what it found or decided.
func decides(sentence string) bool {
	sentence = strings.ToLower(sentence)
	before := 0 // where the word before begins
	for at := 0; at < len(sentence); {
		end := at
		for end < len(sentence) && isWord(sentence[end]) {
			end++
		}
		if decisive[sentence[at:end]] || decisive[sentence[before:end]] {
			return true
		}
		before, at = at, end+1
	}
	return false
}

// The words with which a sentence may begin that tells what the agent does next, and those that follow them.
var (
	turning = []string{"Now ", "Next ", "OK", "Okay", "Good", "Great"}
	nexts   = []string{"Let me", "let me", "Let's", "let's", "I'll", "I will", "I'm going to"}
)

// announces reports whether a sentence tells what the agent does next.
func announces(sentence string) bool {
	for _, begin := range turning {
		if rest, ok := strings.CutPrefix(sentence, begin); ok {
			sentence = rest
			break
		}
	}
	sentence = strings.TrimLeft(strings.TrimPrefix(sentence, ","), " \t\n\f\r")
	return slices.ContainsFunc(nexts, func(words string) bool {
		rest, ok := strings.CutPrefix(sentence, words)
		return ok && (rest == "" || !isWord(rest[0]))
	})
}

// worthOfSentence returns what a sentence is worth for its size: what its names are, more where it decides something.
func (m *Memory) worthOfSentence(w *words) float64 {
	sum := 1.0
	for name := range names.Scan([]byte(w.text), false) {
		if k := m.known[string(name.Text)]; k != nil {
			sum += k.now
		}
	}
	switch {
	case decides(w.text):
		sum *= definesMore
	case announces(w.text):
		sum /= definesMore
	}
	return float64(sum / math.Pow(float64(w.tokens()), linePower))
}
