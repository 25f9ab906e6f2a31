package compactor

import (
	"context"

	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/modelcall"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// Summaries returns the summaries of checkpoint n of a session, 0 for the newest, with their texts and with what is
// known of the models that wrote them, and what was dropped without a summary; of the newest also those that it waits
// for and that have no text in it. Of a
// checkpoint that another version of the engine made, the summaries are not known.
//
// Errors: ErrNotFound, ErrPruned, *session.DamagedError.
func Summaries(ctx context.Context, store *postgres.Store, at session.Address, n int) (protocol.Summaries, error) {
	found := protocol.Summaries{Summaries: []protocol.Summary{}}
	c, key, format, err := store.WholeCheckpoint(ctx, at, n)
	if err != nil {
		return found, err
	}
	found.Checkpoint = c.N
	texts, err := textsOf(ctx, &c, format)
	if err != nil {
		return found, err
	}
	known, err := store.Summaries(ctx, key)
	if err != nil {
		return found, err
	}
	for i := range texts {
		found.Summaries = append(found.Summaries, summaryOf(&texts[i], known))
	}
	if n == 0 {
		found.Summaries = append(found.Summaries, waitedFor(texts, known)...)
	}
	return found, nil
}

// textsOf reads the summaries of a checkpoint.
func textsOf(ctx context.Context, c *postgres.Checkpoint, format session.Format) ([]compact.SegmentText, error) {
	if c.N == 0 || !sameEngine(c) {
		return nil, nil
	}
	base, err := loaded(c)
	if err != nil {
		return nil, err
	}
	own, err := policy.Parse(c.Policy)
	if err != nil {
		return nil, err
	}
	texts, err := compact.Summaries(ctx, compact.Input{Format: format, Policy: own, WindowTokens: 1, Base: base})
	if err != nil {
		return nil, session.DamagedState(c.N, err)
	}
	return texts, nil
}

// summaryOf joins a summary with what is known of its answer.
func summaryOf(t *compact.SegmentText, known []session.Summary) protocol.Summary {
	s := protocol.Summary{
		First: t.First, Last: t.Last, Messages: t.Messages, Tokens: t.Tokens, Writer: t.Writer, State: string(t.State),
		Generation: t.Generation, Ref: session.MessagesRef{First: t.First, Last: t.Last}.String(),
		Flags: append([]string{}, t.Flags...), Text: t.Text,
	}
	for i := range known {
		k := &known[i]
		switch {
		case t.State == compact.Dropped && k.Reason != "" && t.First <= k.Last && k.First <= t.Last:
			s.Model, s.Attempts = k.Model, k.Attempts
			s.AskedAt, s.Reason = k.AskedAt, k.Reason
		case t.Digest == k.Digest && (t.State != compact.Written || t.Writer == k.Model):
			join(&s, k)
		}
	}
	return s
}

// join adds what is known of a model's answer, or of why there is none.
func join(s *protocol.Summary, k *session.Summary) {
	s.Model, s.Attempts = k.Model, k.Attempts
	s.AskedAt, s.AnsweredAt = k.AskedAt, k.FinishedAt
	s.Reason, s.AskAgainAt = k.Reason, k.AskAfter
	switch k.State {
	case session.SummaryAnswered:
		s.Provenance = &k.Provenance
	case session.SummaryFailed:
		s.State = string(session.SummaryFailed)
	case session.SummarySuperseded:
		s.Reason = givenUp
	}
}

// givenUp is why a restored checkpoint waits for a summary that nobody asks for.
const givenUp = "a later checkpoint did not need it, and this one was restored: the next compaction asks for it again"

// waitedFor returns the summaries that a model is to write of messages that the view still shows.
func waitedFor(texts []compact.SegmentText, known []session.Summary) (list []protocol.Summary) {
	shown := map[session.SummaryDigest]bool{}
	for i := range texts {
		shown[session.SummaryDigest(texts[i].Digest)] = true
	}
	for i := range known {
		k := &known[i]
		if shown[k.Digest] || k.State == session.SummaryAnswered || k.State == session.SummarySuperseded {
			continue
		}
		s := protocol.Summary{
			First: k.First, Last: k.Last, State: string(session.SummaryDue), Flags: []string{},
			Ref: session.MessagesRef{First: k.First, Last: k.Last}.String(),
		}
		join(&s, k)
		list = append(list, s)
	}
	return list
}

// Wants returns what a proposal wants from models, and what that costs at the most.
func (p *Proposal) Wants(asks *modelcall.Caller) []protocol.WantedSummary {
	list := []protocol.WantedSummary{}
	for i := range p.Wanted {
		w := &p.Wanted[i]
		one := protocol.WantedSummary{
			First: w.Request.First, Last: w.Request.Last, Model: w.Model, State: string(w.State),
			StandIn: w.Answer == nil, Reason: w.Reason,
		}
		spent, price := session.ModelSpending{}, false
		switch {
		case w.State == AnswerAsked:
			spent, price = w.Answer.Provenance.Spent, true
		case w.Answer == nil && asks != nil:
			estimate, err := asks.Estimate(w.Model, w.Request)
			spent, price = estimate, err == nil
		}
		if price {
			one.Calls = spent.Calls
			one.Input, one.OutputMax = spent.Input, spent.Output
			one.CostMax = float64(spent.CostMicros) / 1e6
		}
		list = append(list, one)
	}
	return list
}
