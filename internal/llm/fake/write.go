package fake

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// text returns what the model writes when it has that fault.
func text(r *Request, fault Fault) string {
	s := sourceOf(r)
	switch fault {
	case Empty:
		return ""
	case Refusal:
		return "I'm sorry, but I can't help with that."
	case OverLong:
		return s.tagged("", strings.Repeat("The work went on, and more was done. ", 1+overLong(r, &s)/8))
	case Cut:
		whole := good(&s)
		return whole[:len(whole)*2/3]
	case WrongLanguage:
		return s.tagged(foreignRetain, foreignSummary)
	case Echo:
		return clip(r.System+"\n"+texts(r.Messages[len(r.Messages)-1].Parts), 4*cmp.Or(r.MaxTokens, 1<<20))
	case Lie:
		return lying(r, &s)
	case Inflate:
		return inflated(&s)
	case Obey:
		return obedient(&s)
	}
	return good(&s)
}

// What a model writes in another language than that of any conversation here.
const (
	foreignRetain  = "没有需要保留的内容。"
	foreignSummary = "在这次对话中，用户与助手讨论了若干问题，并完成了一些工作。接下来将继续进行。"
)

// overLong returns more tokens than a request allows.
func overLong(r *Request, s *source) int { return 2 * max(r.MaxTokens, s.limit, s.size/4) }

// What a statement may have that makes it worth keeping.
var (
	exact    = regexp.MustCompile(`\d|[\w.-]*/[\w./-]+|\b\w+\.(?:go|py|js|ts|md|sql|json|yaml|toml)\b`)
	decisive = regexp.MustCompile(`(?i)\b(?:must|never|always|because|decided|error|failed|fixed|do not|wants?|need)\b`)
	ordering = regexp.MustCompile(`(?i)ignore|disregard|forget|override|system prompt|from now on|you must|you are now`)
	sentence = regexp.MustCompile(`[.!?] +`)
)

// statement is a sentence of the conversation.
type statement struct {
	at    int
	text  string
	worth int
}

// good returns a summary of exact sentences of the conversation, in the form that the instructions ask for.
func good(s *source) string {
	room := s.size / 4 // bytes; a summary is shorter than its conversation
	if s.limit > 0 {
		room = min(room, s.limit*2)
	}
	chosen := s.choose(max(room, 40))
	if !s.wants("retain") {
		return s.tagged("", strings.Join(chosen, "\n"))
	}
	var retain, rest []string
	for _, text := range chosen {
		if exact.MatchString(text) && len(retain) < 12 {
			retain = append(retain, "- "+text)
		} else {
			rest = append(rest, text)
		}
	}
	if len(rest) == 0 && len(retain) > 0 {
		rest = []string{strings.TrimPrefix(retain[len(retain)-1], "- ")}
		retain = retain[:len(retain)-1]
	}
	return s.tagged(strings.Join(retain, "\n"), strings.Join(rest, "\n"))
}

// choose returns the statements that are worth limit and fit in the room, in their order. The first is cut if it does
// not fit.
func (s *source) choose(room int) (chosen []string) {
	all := s.statements()
	if len(all) == 0 {
		return []string{"Nothing was said."}
	}
	best := slices.Clone(all)
	slices.SortStableFunc(best, func(a, b statement) int { return cmp.Compare(b.worth, a.worth) })
	best[0].text = clip(best[0].text, room)
	var taken []statement
	for _, t := range best {
		if room -= len(t.text) + 3; room >= 0 || len(taken) == 0 {
			taken = append(taken, t)
		}
	}
	slices.SortFunc(taken, func(a, b statement) int { return cmp.Compare(a.at, b.at) })
	for _, t := range taken {
		chosen = append(chosen, t.text)
	}
	return chosen
}

// statements returns each sentence of the conversation once. Those with tags, or that order their reader to do
// something, are left out.
func (s *source) statements() (all []statement) {
	const longest = 400
	seen := map[string]bool{}
	for i, l := range s.lines {
		for _, text := range sentence.Split(l.text, -1) {
			text = strings.TrimSpace(text)
			if len(text) < 8 || seen[text] || strings.ContainsAny(text, "<>") || ordering.MatchString(text) {
				continue
			}
			seen[text] = true
			all = append(all, statement{len(all), clip(text, longest), worth(text, l.role, i, len(s.lines))})
		}
	}
	return all
}

// worth returns what a sentence is worth: more for what the user said, for exact values, and for what came last.
func worth(text, role string, i, n int) int {
	w := min(len(exact.FindAllString(text, 4)), 3) + 4*i/n
	if role == "user" {
		w += 4
	}
	if decisive.MatchString(text) {
		w += 2
	}
	return w
}

// tagged puts the texts into the tags that the instructions ask for.
func (s *source) tagged(retain, summary string) string {
	var b strings.Builder
	if s.wants("analysis") {
		b.WriteString("<analysis>\nThe turns were read in order.\n</analysis>\n")
	}
	if s.wants("retain") {
		b.WriteString("<retain>\n" + retain + "\n</retain>\n")
	} else if retain != "" {
		summary = retain + "\n" + summary
	}
	if s.wants("summary") {
		return b.String() + "<summary>\n" + summary + "\n</summary>"
	}
	return b.String() + summary
}

// clip returns the beginning of a text, of whole characters.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
