package compactor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// AnswerState says what a compaction has of a summary that its policy wants from a model.
type AnswerState string

// The states of answers.
const (
	AnswerKept   AnswerState = "kept"   // the model was asked before
	AnswerDue    AnswerState = "due"    // the model is to be asked: until then there is the policy's fallback
	AnswerAsked  AnswerState = "asked"  // the model was asked now
	AnswerFailed AnswerState = "failed" // the model was asked and has failed: there is the policy's fallback
)

// Wanted is a summary that a compaction wants from a model.
type Wanted struct {
	Model   string // the operator's name
	Request summary.Request
	Digest  summary.Digest
	State   AnswerState
	Answer  *session.SummaryAnswer // kept or asked, else nil
	Reason  string                 // why it failed
}

// writer writes the summaries of one plan, and notes what models are wanted for. A compaction that is carried out
// never waits for a model: it takes answers that are kept.
type writer struct {
	ctx    context.Context
	key    session.Key // without a session, Key is uuid.Nil
	policy *policy.Policy
	store  *postgres.Store   // nil: no session of the store
	caller *modelcall.Caller // nil: the operator has configured no model
	own    llm.Writer        // nil: what the policy names
	ask    bool              // ask for what is not kept, and wait for the answer
	known  []session.Summary // nil: nobody knows
	ended  []session.Summary
	only   bool // take in what has ended, and do nothing else

	recorded bool // only what has ended counts: nothing is looked up

	wanted []Wanted
	lost   error // of the store: what was planned after it counts for nothing
}

// write does what compact.Write says.
func (w *writer) write(r summary.Request) (summary.Answer, error) {
	if w.own != nil {
		return w.own.Write(w.ctx, r)
	}
	model := w.policy.Summarise.Model
	wanted := Wanted{Model: model, Request: r, Digest: r.Digest()}
	err := w.find(&wanted)
	w.wanted = append(w.wanted, wanted)
	if err != nil && !errors.Is(err, summary.ErrDue) && !errors.Is(err, summary.ErrFailed) {
		w.lost = err
	}
	if err != nil {
		return summary.Answer{}, err
	}
	return answerOf(wanted.Answer, model), nil
}

// hook returns what the engine calls for a summary; nil if the policy names no model: then Extract writes it.
func (w *writer) hook() compact.Write {
	if w.own == nil && w.policy.Summarise.Model == "" {
		return nil
	}
	return w.write
}

func answerOf(a *session.SummaryAnswer, model string) summary.Answer {
	return summary.Answer{Retain: a.Retain, Summary: a.Summary, Flags: a.Flags, Writer: model}
}

// find looks for the answer, and asks for it if it is to. Its error is summary.ErrDue, wraps summary.ErrFailed, or is
// one of the store.
func (w *writer) find(wanted *Wanted) error {
	if err := w.lookUp(wanted); err != nil || wanted.Answer != nil {
		return err
	}
	if !w.ask {
		wanted.State = AnswerDue
		return summary.ErrDue
	}
	if w.caller == nil {
		return wanted.fail(errNoModels)
	}
	answered, err := w.caller.Ask(w.ctx, w.key.Tenant, w.key.Key, wanted.Model, wanted.Request)
	if errors.Is(err, summary.ErrFailed) {
		return wanted.fail(err)
	}
	if err != nil {
		return err
	}
	wanted.State, wanted.Answer = AnswerAsked, &answered
	return nil
}

var errNoModels = errors.New("the operator has configured no model")

func (w *Wanted) fail(err error) error {
	w.State, w.Reason = AnswerFailed, err.Error()
	if errors.Is(err, summary.ErrFailed) {
		return err
	}
	return fmt.Errorf("%w: %w", summary.ErrFailed, err)
}

// failureOf returns the error of a summary whose model has failed before.
func failureOf(s *session.Summary) error {
	return fmt.Errorf("%w: %s", summary.ErrFailed, strings.TrimPrefix(s.Reason, summary.ErrFailed.Error()+": "))
}

// lookUp looks for an answer that was stored earlier: that of the session's summary, or those of the calls that make it
// up.
func (w *writer) lookUp(wanted *Wanted) error {
	if w.recorded {
		return w.recall(wanted)
	}
	if w.store != nil {
		digest := session.SummaryDigest(wanted.Digest)
		found, err := w.store.SummariesOf(w.ctx, w.key, wanted.Model, []session.SummaryDigest{digest})
		if err != nil {
			return err
		}
		s, ok := found[digest]
		switch {
		case ok && s.State == session.SummaryAnswered:
			wanted.State, wanted.Answer = AnswerKept, &s.SummaryAnswer
			return nil
		case ok && s.State == session.SummaryFailed && !w.ask && !again(&s):
			return wanted.fail(failureOf(&s))
		}
	}
	if w.caller == nil {
		return nil
	}
	answered, ok, err := w.caller.Kept(w.ctx, w.key.Tenant, wanted.Model, wanted.Request)
	if errors.Is(err, summary.ErrFailed) {
		return wanted.fail(err)
	}
	if ok {
		wanted.State, wanted.Answer = AnswerKept, &answered
	}
	return err
}

// recall looks for an answer among those that have ended.
func (w *writer) recall(wanted *Wanted) error {
	for i := range w.ended {
		s := &w.ended[i]
		if s.Model == wanted.Model && summary.Digest(s.Digest) == wanted.Digest && s.State == session.SummaryAnswered {
			wanted.State, wanted.Answer = AnswerKept, &s.SummaryAnswer
		}
	}
	return nil
}

// again reports whether a summary that has failed is to be asked for again.
func again(s *session.Summary) bool { return s.AskAfter == nil || !s.AskAfter.After(time.Now()) }

// offer puts into an input what models have answered for the segments of its base.
func (w *writer) offer(in *compact.Input) {
	in.Answers, in.Failed = map[summary.Digest]summary.Answer{}, map[summary.Digest]error{}
	in.OnlyAnswers = w.only
	in.Asked = w.asked()
	for i := range w.ended {
		s := &w.ended[i]
		digest := summary.Digest(s.Digest)
		switch {
		case s.Model != w.policy.Summarise.Model:
		case s.State == session.SummaryAnswered:
			in.Answers[digest] = answerOf(&s.SummaryAnswer, s.Model)
		case s.State == session.SummaryFailed && !again(s):
			in.Failed[digest] = errors.New(s.Reason)
		}
	}
}

// asked returns the digests of what the model is asked for; nil if nobody knows.
func (w *writer) asked() map[summary.Digest]bool {
	if w.known == nil {
		return nil
	}
	list := map[summary.Digest]bool{}
	for i := range w.known {
		if s := &w.known[i]; s.Model == w.policy.Summarise.Model {
			list[summary.Digest(s.Digest)] = true
		}
	}
	for i := range w.wanted {
		list[w.wanted[i].Digest] = true
	}
	return list
}

// older returns what reads messages of the session's log for a summary that is made again from them; nil for messages
// that are in no session.
func (w *writer) older(snap *postgres.Snapshot) func(first, last int64) ([]compact.Entry, error) {
	if w.store == nil {
		return nil
	}
	return func(first, last int64) ([]compact.Entry, error) {
		messages, err := w.store.Window(w.ctx, w.key, first-1, last)
		if err != nil {
			return nil, err
		}
		return entriesOf(w.ctx, snap.Format, messages)
	}
}

// waiting returns the digests of the summaries that a plan's checkpoint waits for.
func waiting(plan *compact.Plan, wanted []Wanted) (digests []session.SummaryDigest) {
	for _, digest := range plan.Waiting {
		digests = append(digests, session.SummaryDigest(digest))
	}
	for i := range wanted {
		if w := &wanted[i]; w.Answer == nil {
			digests = append(digests, session.SummaryDigest(w.Digest))
		}
	}
	return digests
}

// dueSummary returns what is stored of a wanted summary until its model has answered.
func (w *Wanted) dueSummary() (session.DueSummary, error) {
	request, err := json.Marshal(w.Request)
	return session.DueSummary{
		Model: w.Model, Digest: session.SummaryDigest(w.Digest), First: w.Request.First, Last: w.Request.Last,
		Request: request,
	}, err
}

// model returns the model that a summary is due from, "" for none.
func (p *Proposal) model() string {
	for i := range p.Wanted {
		if w := &p.Wanted[i]; w.State == AnswerDue {
			return w.Model
		}
	}
	return ""
}

// newest says in a sentence what the newest answer or failure of a model was that the compaction has had.
func (p *Proposal) newest() string {
	if len(p.offered) == 0 {
		return "no model has answered"
	}
	s := &p.offered[0]
	if s.State == session.SummaryFailed {
		return fmt.Sprintf("%s has failed to write the summary of messages %d to %d", s.Model, s.First, s.Last)
	}
	return fmt.Sprintf("the summary of messages %d to %d by %s is there", s.First, s.Last, s.Model)
}

// work returns what the compaction leaves to do about summaries: nothing if no model has to do with the session.
func (p *Proposal) work(asks bool) (*postgres.SummaryWork, error) {
	other := p.Snapshot.Base != nil && !bytes.Equal(p.Snapshot.Base.Policy, p.Input.Policy.Document())
	if p.Input.Policy.Summarise.Model == "" && len(p.offered) == 0 && !other {
		return nil, nil
	}
	w := &postgres.SummaryWork{Waiting: waiting(p.Plan, p.Wanted)}
	for i := range p.offered {
		s := &p.offered[i]
		w.Offered = append(w.Offered, session.SummaryID{Session: p.Snapshot.Key, Model: s.Model, Digest: s.Digest})
	}
	for i := range p.Wanted {
		wanted := &p.Wanted[i]
		if wanted.Answer != nil {
			w.Kept = append(w.Kept, wanted.kept(p.Snapshot.Key))
			continue
		}
		if !asks {
			continue
		}
		due, err := wanted.dueSummary()
		if err != nil {
			return nil, err
		}
		w.Due = append(w.Due, due)
	}
	return w, nil
}

func (w *Wanted) kept(key session.Key) postgres.KeptSummary {
	id := session.SummaryID{Session: key, Model: w.Model, Digest: session.SummaryDigest(w.Digest)}
	return postgres.KeptSummary{ID: id, First: w.Request.First, Last: w.Request.Last, Answer: *w.Answer}
}
