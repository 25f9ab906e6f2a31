package summary

import (
	"fmt"
	"strings"
	"unicode"
)

// checkClaims returns an answer without the sentences that state what its request does not have, see claimsOf, with the
// figures of the check. Its error is ErrClaims if these are more than a third of all sentences, or if nothing else is
// left.
func checkClaims(a Answer, r Request) (Answer, error) {
	retain, summary := readChecked(a.Retain, r), readChecked(a.Summary, r)
	s := support{found: map[uint64]bool{}}
	for _, text := range []checkedText{retain, summary} {
		for _, c := range text.claims() {
			s.want(c)
		}
	}
	if len(s.found) > 0 {
		s.request(r)
	}
	sentences := 0
	for _, text := range []checkedText{retain, summary} {
		sentences += text.check(&s, &a.Claims)
	}
	a.Retain, a.Summary = retain.String(), summary.String()
	if 3*a.Claims.Cut > sentences || a.Retain+a.Summary == "" {
		return a, fmt.Errorf("%w: %d of %d sentences", ErrClaims, a.Claims.Cut, sentences)
	}
	return a, nil
}

// checkedText is a text by its lines, from which claims without a source are cut.
type checkedText []checkedLine

// checkedLine is a line: its mark of a list or heading, and its sentences.
type checkedLine struct {
	mark      string
	sentences []sentence
}

type sentence struct {
	text   string // with the white space after it
	claims []claim
	cut    bool
}

// readChecked divides a text into lines and sentences, and finds their claims.
func readChecked(text string, r Request) (all checkedText) {
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if fence := strings.HasPrefix(strings.TrimSpace(line), "```"); fence || fenced {
			fenced = fenced != fence
			claims := r.claimsOf(strings.Trim(line, "` "), true)
			all = append(all, checkedLine{sentences: []sentence{{text: line, claims: claims}}})
			continue
		}
		all = append(all, readLine(line, r))
	}
	return all
}

// readLine divides a line. The row of a table is one sentence.
func readLine(line string, r Request) checkedLine {
	rest := bare(line)
	l := checkedLine{mark: line[:len(line)-len(rest)]}
	for rest != "" {
		end := sentenceEnd(rest)
		if strings.Contains(l.mark, "|") {
			end = len(rest)
		}
		text := rest[:end]
		l.sentences = append(l.sentences, sentence{text: text, claims: r.claimsOf(text, false)})
		rest = rest[end:]
	}
	return l
}

func (all checkedText) claims() (claims []claim) {
	for _, l := range all {
		for _, s := range l.sentences {
			claims = append(claims, s.claims...)
		}
	}
	return claims
}

// check marks the sentences to cut, counts, and returns how many sentences there are besides headings.
func (all checkedText) check(s *support, count *Claims) (sentences int) {
	for i := range all {
		for j := range all[i].sentences {
			at := &all[i].sentences[j]
			for _, c := range at.claims {
				count.Stated++
				if !s.supports(c) {
					count.Unsupported++
					at.cut = true
				}
			}
			if at.cut {
				count.Cut++
			}
			if at.cut || !strings.HasPrefix(all[i].mark, "#") {
				sentences++
			}
		}
	}
	return sentences
}

// String returns the text without what was cut, and without lines that became empty by that.
func (all checkedText) String() string {
	var b strings.Builder
	for _, l := range all {
		kept := ""
		for _, s := range l.sentences {
			if !s.cut {
				kept += s.text
			}
		}
		if kept != "" || len(l.sentences) == 0 {
			b.WriteString(l.mark + strings.TrimRight(kept, " \t") + "\n")
		}
	}
	return trim(b.String())
}
