package modelcall

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/llm"
	"github.com/varve-dev/varve/internal/session"
)

// run is one call of Ask.
type run struct {
	caller  *Caller
	model   *llm.Configured
	tenant  uuid.UUID
	session uuid.UUID
	day     session.ModelBudget
	lookUp  bool // ask nothing

	mu     sync.Mutex
	held   session.ModelSpending // of the run's budget: spent, and reserved by calls under way
	from   session.Provenance
	claims summary.Claims
}

func (r *run) calls() Calls { return Calls{r.caller.Store} }

// errNotKept ends a run that asks nothing.
var errNotKept = errors.New("the answer is not kept")

const (
	atOnce    = 3 // parts of a request that are asked at the same time
	maxLevels = 6 // of answers that are made of answers: each is at most about half as large as the one below
)

// whole returns the answer to a request, which it divides if it is larger than the model's window. The answers to its
// parts are one more request, which may have to be divided, too.
func (r *run) whole(ctx context.Context, request summary.Request) (summary.Answer, error) {
	for range maxLevels {
		parts := summary.Chunks(request, r.room(request))
		if len(parts) == 1 {
			return r.accepted(ctx, parts[0])
		}
		r.mu.Lock()
		r.from.Chunks += len(parts)
		r.mu.Unlock()
		answers, err := r.each(ctx, parts)
		if err != nil {
			return summary.Answer{}, err
		}
		request = summary.Reduce(request, answers)
	}
	return summary.Answer{}, ErrTooLarge
}

// each returns the answers to the parts of a request. After an error no other part is begun, but the answers to those
// that are under way are waited for: they are paid for.
func (r *run) each(ctx context.Context, parts []summary.Request) ([]summary.Answer, error) {
	answers := make([]summary.Answer, len(parts))
	failed := make(chan struct{})
	var once sync.Once
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range parts {
		group.Go(func() (err error) {
			select {
			case <-failed:
				return nil
			default:
			}
			if answers[i], err = r.accepted(ctx, parts[i]); err != nil {
				once.Do(func() { close(failed) })
			}
			return err
		})
	}
	return answers, group.Wait()
}

// overWindow is by how much a provider may count more tokens than summary.Dialogue.Tokens does, which estimates them.
const overWindow = 1.25

// room returns how many tokens, as they are estimated, a dialogue for the request may have.
func (r *run) room(request summary.Request) int {
	output := r.model.Output(summary.Dialogue{MaxTokens: request.MaxTokens})
	return int(float64(r.model.Window-output) / overWindow)
}

// attempts is how often a model is asked for one answer: the second time with what was wrong with the first.
const attempts = 2

// refusedFor is how long an answer that cannot be used is kept, so that a request which is repeated does not pay for
// the same again.
const refusedFor = 24 * time.Hour

// errCut stands for an answer that was longer than its limit, of which nothing is kept.
var errCut = errors.New("it was longer than its limit allows: write much less")

// accepted returns the model's answer to a request that fits its window.
func (r *run) accepted(ctx context.Context, request summary.Request) (answer summary.Answer, err error) {
	dialogue := summary.DialogueOf(request, delimiter())
	if dialogue.Tokens() > r.model.Window-r.model.Output(dialogue) {
		return answer, ErrTooLarge
	}
	var refusal error
	for range attempts {
		asked := dialogue
		if refusal != nil {
			asked = dialogue.Again(refusal)
		}
		text, err := r.call(ctx, r.keyOf(request, refusal), request, asked)
		if err != nil {
			return answer, err
		}
		answer, refusal = accept(text, request)
		if refusal == nil {
			r.addClaims(answer.Claims)
			return answer, nil
		}
		r.mu.Lock()
		r.from.Refused = append(r.from.Refused, refusal.Error())
		r.mu.Unlock()
	}
	return answer, fmt.Errorf("%w: %w", ErrUnusable, refusal)
}

// accept reads an answer. An empty one was cut, see pay.
func accept(text string, request summary.Request) (summary.Answer, error) {
	if text == "" {
		return summary.Answer{}, errCut
	}
	return summary.Accept(text, request)
}

func (r *run) addClaims(c summary.Claims) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims.Stated += c.Stated
	r.claims.Unsupported += c.Unsupported
	r.claims.Cut += c.Cut
}

// delimiter returns what is around a transcript: it cannot be foreseen.
func delimiter() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it does not fail
	return hex.EncodeToString(random[:])
}

// keyOf returns the key under which the answer to a request is kept: what is asked, of whom, in which words, and why
// an answer before was refused. The delimiter is another one each time and does not count.
func (r *run) keyOf(request summary.Request, refusal error) [32]byte {
	digest := request.Digest()
	why := ""
	if refusal != nil {
		why = refusal.Error()
	}
	hash := sha256.New()
	for _, part := range []string{r.model.Provider, r.model.Model, summary.PromptVersion, string(digest[:]), why} {
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash does not fail
		_, _ = hash.Write([]byte(part))
	}
	return [32]byte(hash.Sum(nil))
}
