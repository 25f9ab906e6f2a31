package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/wire"
)

// Question is something that an agent must still know at the end of a session.
type Question struct {
	Session  string `json:"session"` // its name
	Question string `json:"question"`
	// Answer is a regular expression (RE2). Texts are searched without backslashes, and with one space for each run of
	// white space; what it finds in the log is what a view must have.
	Answer string `json:"answer"`
}

// ReadQuestions reads a document of questions: a JSON list of objects with the members of Question.
func ReadQuestions(document []byte) (list []Question, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("questions: %w", err)
	}
	for i, q := range list {
		if q.Session == "" || q.Question == "" || q.Answer == "" {
			return nil, fmt.Errorf("question %d must name its session, question and answer", i)
		}
		if _, err := regexp.Compile(q.Answer); err != nil {
			return nil, fmt.Errorf("question %d: answer: %w", i, err)
		}
	}
	return list, nil
}

// Ask gives sessions their questions, before they are measured, and returns those of sessions that are not among them.
func Ask(sessions []*Session, questions []Question) (others []Question) {
	byName := map[string]*Session{}
	for _, s := range sessions {
		byName[s.Name] = s
	}
	for _, q := range questions {
		if s := byName[q.Session]; s != nil {
			s.questions = append(s.questions, q)
		} else {
			others = append(others, q)
		}
	}
	return others
}

// asked is a question with the strings that answer it, any of which will do.
type asked struct {
	words   []string // of the question, in lower case
	answers []int32
}

// questions numbers the answers that the log has.
func (x *indexer) questions() error {
	for _, q := range x.session.questions {
		to, pattern := asked{words: wordsOf(q.Question)}, regexp.MustCompile(q.Answer)
		for i := range x.session.Messages {
			for _, found := range pattern.FindAll(normalise(nil, x.session.Messages[i].Body), -1) {
				if n := x.pattern(string(found), false); len(found) >= gram && !slices.Contains(to.answers, n) {
					to.answers = append(to.answers, n)
				}
			}
		}
		if to.answers == nil {
			return fmt.Errorf("no message has the answer to %q", q.Question)
		}
		x.notes.asked = append(x.notes.asked, to)
	}
	return nil
}

// wordOfQuestion is a word that says what a question is about: others are too short, or in any question.
var (
	wordOfQuestion = regexp.MustCompile(`[\pL\pN_]{4,}`)
	anyQuestion    = strings.Fields("about after agent before could does during final first from have many must " +
		"should that their there they this user value were what when where which while whose will with would")
)

func wordsOf(question string) []string {
	words := wordOfQuestion.FindAllString(strings.ToLower(question), -1)
	return slices.DeleteFunc(words, func(w string) bool { return slices.Contains(anyQuestion, w) })
}

// Answer is what the last view of a session has of the answer to a question.
type Answer struct {
	Question string
	Held     bool // the answer
	Named    bool // the answer, or a ref beside a word of the question that brings it back
}

// answers asks the last view the session's questions.
func (m *meter) answers() (list []Answer) {
	for i := range m.notes.asked {
		q := &m.notes.asked[i]
		held := slices.ContainsFunc(q.answers, m.holds)
		list = append(list, Answer{m.session.questions[i].Question, held, held || m.namesSource(q)})
	}
	return list
}

// Last is the last view of a session.
type Last struct {
	Summary     string // its first message that stands for others, "" if there is none
	Compactions int    // that changed the view
	Answers     []Answer
}

// LastView replays a session as Measure does, and returns its last view.
func LastView(ctx context.Context, s *Session, by Contender, window int) (*Last, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	m := newMeter(s, by, window, &Outcome{})
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	last := &Last{Compactions: m.view.compactions, Answers: m.answers()}
	if m.base == nil {
		return last, nil
	}
	body := slices.Concat([]byte{'['}, m.base.Body, []byte{']'})
	for span := range rawjson.Elements(body, 0) {
		message := span.Of(body)
		found, err := wire.Inspect(s.Format, message)
		if err != nil {
			return nil, err
		}
		for _, p := range found.Parts {
			said := string(wire.ResultText(s.Format, message, p).Text)
			if p.Kind == wire.Text && strings.HasPrefix(said, "[Summary of ") {
				last.Summary = said
				return last, nil
			}
		}
	}
	return last, nil
}

// mostRead is how many messages a ref covers at most that is read back for one answer.
const mostRead = 10

// namesSource reports whether a line of the last checkpoint, or one beside it, has a word of the question and a ref of
// a message that answers it.
func (m *meter) namesSource(q *asked) bool {
	if m.base == nil {
		return false
	}
	lines := strings.Split(strings.ToLower(string(m.base.Body)), `\n`)
	for i, line := range lines {
		if !m.refersTo(line, q.answers) {
			continue
		}
		near := strings.Join(lines[max(i-1, 0):min(i+2, len(lines))], "\n")
		if slices.ContainsFunc(q.words, func(w string) bool { return strings.Contains(near, w) }) {
			return true
		}
	}
	return false
}

// resultRefs finds the seqs of the results in refs.
var resultRefs = regexp.MustCompile(`\br(\d+)\.\d+-`)

// refersTo reports whether a line has a ref that brings back a message with one of these strings.
func (m *meter) refersTo(line string, strings []int32) bool {
	covers := func(first, last int64) bool {
		return last-first < mostRead && slices.ContainsFunc(strings, func(n int32) bool {
			return slices.ContainsFunc(m.places[n], func(at int32) bool {
				seq := m.session.Messages[at].Seq
				return first <= seq && seq <= last
			})
		})
	}
	for _, ref := range resultRefs.FindAllStringSubmatch(line, -1) {
		if covers(rangeOf(ref[1], "")) {
			return true
		}
	}
	for _, ref := range messageRefs.FindAllStringSubmatch(line, -1) {
		if covers(rangeOf(ref[1], ref[2])) {
			return true
		}
	}
	return false
}
