package llm

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/tokens"
	"github.com/varve-dev/varve/internal/trace"
)

// Models are the models that an operator has configured. A nil *Models has none.
type Models struct{ named map[string]*Configured }

// Configured is a model that an operator has configured, with everything around its calls.
type Configured struct {
	Name      string // the operator's
	Provider  string // the operator's name of the provider
	Kind      Kind
	Model     string // as the provider names it
	Window    int    // tokens of input and output together
	MaxOutput int    // tokens of an answer
	Reasoning int    // tokens that it may think with before
	Price     Price

	wire     Model // one attempt
	breaker  *breaker
	slots    *admit.Gate // of the provider
	timeout  time.Duration
	attempts int
}

// Open returns the models of a configuration. Nothing is asked yet. Its error is that of Validate.
func Open(c Config, log *slog.Logger) (*Models, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return over(newLink, c, log), nil
}

// over returns the models of a valid configuration, asked over the links that connect makes.
func over(connect func(Provider) link, c Config, log *slog.Logger) *Models {
	named := map[string]*Configured{}
	for provider, p := range c.Providers {
		p = p.withDefaults()
		link := connect(p)
		slots := admit.New(admit.Config{
			Name: "models of " + provider, Size: int64(p.Concurrency), Each: int64(p.Concurrency),
		})
		breakers := map[string]*breaker{}
		for name, d := range c.Models {
			if d.Provider != provider {
				continue
			}
			if breakers[d.Model] == nil {
				breakers[d.Model] = newBreaker(provider, d.Model, p.Breaker, log)
			}
			d = d.withDefaults(p)
			named[name] = &Configured{
				Name: name, Provider: provider, Kind: p.Kind, Model: d.Model, Window: d.Window, MaxOutput: d.MaxOutput,
				Reasoning: d.Reasoning, Price: d.Price, wire: link.model(name, d), breaker: breakers[d.Model],
				slots: slots, timeout: seconds(p.Timeout), attempts: p.Attempts,
			}
		}
	}
	return &Models{named}
}

// Named returns the model of that name.
func (m *Models) Named(name string) (*Configured, bool) {
	if m == nil {
		return nil, false
	}
	c, ok := m.named[name]
	return c, ok
}

// Names returns the names of all models, sorted.
func (m *Models) Names() []string {
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.named))
}

// Limit returns how many tokens the answer to a dialogue may have.
func (c *Configured) Limit(d summary.Dialogue) int {
	if d.MaxTokens <= 0 {
		return c.MaxOutput
	}
	return min(d.MaxTokens, c.MaxOutput)
}

// Output returns how many tokens a call may write: the answer, and what the model thinks before.
func (c *Configured) Output(d summary.Dialogue) int { return c.Limit(d) + c.Reasoning }

// What a provider may add to a dialogue for its structure, in tokens.
const (
	aroundDialogue = 256
	aroundPart     = 64
)

// Bound returns the most that a call may use.
func (c *Configured) Bound(d summary.Dialogue) Usage {
	d.MaxTokens = c.Output(d)
	return bound(d)
}

// bound returns the most that a dialogue and its answer can use: no token is shorter than a byte.
func bound(d summary.Dialogue) Usage {
	size := aroundDialogue + len(d.System)
	for _, m := range d.Messages {
		for _, p := range m.Parts {
			size += aroundPart + len(p.Text) + 2*len(p.Tool) + len(p.CallID)
		}
	}
	return Usage{Input: int64(size), Output: int64(d.MaxTokens)}
}

// estimate returns what a dialogue and its answer use, for a provider that does not say.
func estimate(d summary.Dialogue, answer string) Usage {
	input := tokens.Estimate([]byte(d.System))
	for _, m := range d.Messages {
		for _, p := range m.Parts {
			input += tokens.Estimate([]byte(p.Text))
		}
	}
	return Usage{Input: int64(input), Output: int64(tokens.Estimate([]byte(answer))), Estimated: true}
}

// vendors are the providers as OpenTelemetry names them.
var vendors = map[Kind]string{OpenAI: "openai", OpenAIResponses: "openai", Anthropic: "anthropic"}

// Ask asks the model: it waits for a free slot of the provider, in the tenant's turn, keeps the deadline, tries again
// what the provider has not worked on, and asks nothing while the breaker is open.
func (c *Configured) Ask(ctx context.Context, tenant uuid.UUID, d summary.Dialogue) (Reply, error) {
	d.MaxTokens = c.Output(d)
	began := time.Now()
	ctx, span := trace.Model(ctx, trace.Call{Provider: vendors[c.Kind], Model: c.Model, MaxTokens: d.MaxTokens})
	reply, err := c.ask(ctx, tenant, d)
	c.count(reply, err, time.Since(began), span)
	return reply, err
}
