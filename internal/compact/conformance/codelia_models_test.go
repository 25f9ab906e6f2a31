package conformance

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

type codeliaModel struct {
	ID, Provider                  string
	Aliases                       []string
	ContextWindow, MaxInputTokens *int64
}

// limits returns a model's context limits, the one that counts first.
func (c *codelia) limits(m *codeliaModel) (limits []int64) {
	if m == nil {
		return nil
	}
	order := []*int64{m.ContextWindow, m.MaxInputTokens}
	if c.head() {
		slices.Reverse(order)
	}
	for _, limit := range order {
		if limit != nil {
			limits = append(limits, *limit)
		}
	}
	return limits
}

// model looks a model up by its id, or by an alias of the provider; "" is all providers, where the alias is only one's.
func (c *codelia) model(provider, id string) *codeliaModel {
	var found *codeliaModel
	for i := range c.Registry {
		m := &c.Registry[i]
		if m.ID == id {
			found = m
		}
	}
	if found != nil {
		return found
	}
	for i := range c.Registry {
		m := &c.Registry[i]
		if !slices.Contains(m.Aliases, id) || provider != "" && m.Provider != provider {
			continue
		}
		if found != nil && found.Provider != m.Provider {
			return nil
		}
		found = m
	}
	return found
}

// The later version looks for a model in more ways: by provider/model, and without the date of a snapshot.

// qualified returns the model whose results are bounded together.
func (c *codelia) qualified(id string) *codeliaModel {
	if m := c.model(c.LLM.Provider, id); m != nil || !c.head() {
		return m
	}
	if provider, name, ok := splitModel(id); ok {
		return cmp.Or(c.model(provider, name), c.model(provider, id))
	}
	return c.model("", id)
}

var snapshot = regexp.MustCompile(`-[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// dated returns the model whose usage is judged.
func (c *codelia) dated(id string) *codeliaModel {
	m := c.model(c.LLM.Provider, id)
	if m != nil || !c.head() {
		return m
	}
	m = c.model(c.LLM.Provider, snapshot.ReplaceAllString(id, ""))
	if provider, name, ok := splitModel(id); ok {
		undated := snapshot.ReplaceAllString(name, "")
		m = cmp.Or(m, c.model(provider, name), c.model(provider, id), c.model(provider, undated), c.model(provider, provider+"/"+undated))
	}
	return cmp.Or(m, c.model("", id))
}

func splitModel(id string) (provider, name string, ok bool) {
	provider, name, _ = strings.Cut(id, "/")
	return provider, name, name != "" && slices.Contains([]string{"openai", "anthropic", "openrouter", "google", "moonshot", "zai"}, provider)
}
