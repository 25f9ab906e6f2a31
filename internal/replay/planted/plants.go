package planted

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/varve-dev/varve/internal/compact/summary"
)

//go:embed plants.txt
var plantsText string

// fact is a sentence or line that was planted in a step.
type fact struct {
	kind string
	says string // what a summary must have of it: the sentence, or the name or number in the line of a result
	line string // what was planted
	step int
	seq  int64 // of its message
}

// kind is a kind of fact, and where it stands in a session.
type kind struct {
	name, place string
	sentences   []string
}

var kinds = readKinds(plantsText)

// Kinds lists the kinds of facts.
func Kinds() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

func readKinds(text string) (all []kind) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head, ok := strings.CutPrefix(line, "= "); ok {
			space := strings.LastIndexByte(head, ' ')
			all = append(all, kind{name: head[:space], place: head[space+1:]})
		} else if !strings.HasPrefix(line, "//") {
			last := &all[len(all)-1]
			last.sentences = append(last.sentences, line)
		}
	}
	return all
}

// half returns the sentences of a kind that are held out, or the others.
func (k *kind) half(heldOut bool) (half []string) {
	for i, sentence := range k.sentences {
		if i%2 == 1 == heldOut {
			half = append(half, sentence)
		}
	}
	return half
}

// plant returns a copy of the steps with facts in the first ones, and the facts. Of each kind are two, where there are
// texts for them.
func plant(parts [][]summary.Message, random *rand.Rand, heldOut bool) (with [][]summary.Message, facts []fact) {
	with = make([][]summary.Message, len(parts))
	copy(with, parts)
	for step := range withFacts {
		with[step] = copied(parts[step])
	}
	for i := range kinds {
		places := placesFor(with[:withFacts], kinds[i].place)
		for range min(2, len(places)) {
			at := places[random.IntN(len(places))]
			f := kinds[i].fact(random, heldOut)
			f.step, f.seq = at.step, at.seq
			insert(at.part, &f, kinds[i].place, random)
			facts = append(facts, f)
		}
	}
	return with, facts
}

// copied returns messages whose parts may be changed.
func copied(messages []summary.Message) []summary.Message {
	all := make([]summary.Message, len(messages))
	for i, m := range messages {
		m.Parts = append([]summary.Part(nil), m.Parts...)
		all[i] = m
	}
	return all
}

// spot is a part in which a fact can stand.
type spot struct {
	step int
	seq  int64
	part *summary.Part
}

// longText is from where a text of the user is probably pasted.
const longText = 4000

func placesFor(parts [][]summary.Message, place string) (spots []spot) {
	for step, messages := range parts {
		for i := range messages {
			for k := range messages[i].Parts {
				p := &messages[i].Parts[k]
				fits := false
				switch place {
				case "user":
					typed := p.Kind == summary.Text && len(p.Text) < longText && summary.Said(p.Text) != ""
					fits = typed && messages[i].Role == "user"
				case "agent":
					fits = messages[i].Role == "assistant" && p.Kind == summary.Text && p.Text != ""
				case "result":
					fits = p.Kind == summary.Result && p.Text != "" && !p.Failed
				}
				if fits {
					spots = append(spots, spot{step, messages[i].Seq, p})
				}
			}
		}
	}
	return spots
}

// fact returns a fact with a sentence of one half.
func (k *kind) fact(random *rand.Rand, heldOut bool) fact {
	half := k.half(heldOut)
	sentence := half[random.IntN(len(half))]
	name, number := word(random), fmt.Sprint(100_000+random.IntN(900_000))
	shown := name
	if k.place == "agent" && random.IntN(2) == 0 && !strings.Contains(sentence, "/%s") {
		shown = "`" + name + "`" // as agents often write it
	}
	line := strings.NewReplacer(
		"%s-%d", name+"-"+number, "%s%d", name+number, "%s", shown, "%d", number,
	).Replace(sentence)
	f := fact{kind: k.name, says: strings.TrimRight(line, ".。"), line: line}
	if k.place == "result" {
		if f.says = number; strings.Contains(sentence, "%s") {
			f.says = name
		}
	}
	return f
}

// word returns a name that no text has.
func word(random *rand.Rand) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	name := []byte{}
	for range 3 {
		name = append(name, consonants[random.IntN(len(consonants))], vowels[random.IntN(len(vowels))])
	}
	return string(name) + []string{"_sync", "-api", "Reader", "_v2", "_core", "Map"}[random.IntN(6)]
}

// insert puts a fact into a part: a line between two lines of a result, a sentence before a text, between two of its
// paragraphs, or behind it.
func insert(p *summary.Part, f *fact, place string, random *rand.Rand) {
	if place != "result" {
		p.Text = inserted(p.Text, f.line, random)
		return
	}
	from := random.IntN(len(p.Text) + 1)
	end := strings.IndexByte(p.Text[from:], '\n')
	if end < 0 {
		p.Text += "\n" + f.line
		return
	}
	p.Text = p.Text[:from+end+1] + f.line + "\n" + p.Text[from+end+1:]
}

// inserted returns a text with one sentence more.
func inserted(text, sentence string, random *rand.Rand) string {
	switch random.IntN(4) {
	case 0:
		return sentence + "\n" + text
	case 1:
		if before, after, ok := strings.Cut(text, "\n\n"); ok && !strings.Contains(before, "```") {
			return before + "\n\n" + sentence + "\n\n" + after
		}
	case 2:
		if strings.HasSuffix(text, ".") {
			return text + " " + sentence
		}
	}
	return text + "\n\n" + sentence
}

// nameOf returns a number for a session's name.
func nameOf(name string) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(name))
	return sum.Sum64()
}
