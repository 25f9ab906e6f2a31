package provider

import (
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// passed has the facts of the servers whose models a gateway serves that reads lists of thoughts for all of them: it
// wants reasoning_details back as they came (openrouter.ai/docs/guides/best-practices/reasoning-tokens).
var passed = func() map[Dialect]*Facts {
	all := map[Dialect]*Facts{}
	for d, facts := range made[session.OpenAIChat] {
		if facts.Reasoning == TakesReasoning || facts.Reasoning >= RequiresReasoning {
			lists := *facts
			lists.ThoughtLists = true
			all[d] = &lists
		}
	}
	return all
}()

// passesLists reports whether a model's name says that a gateway serves it which reads lists of thoughts, though the
// server of its dialect reads none.
func passesLists(f session.Format, server *Facts, model string) bool {
	gateway, _, more := strings.Cut(strings.ToLower(model), "/")
	return f == session.OpenAIChat && more && gateways[gateway] == OpenRouter && passed[server.Dialect] != nil
}

// For returns what the server of a model takes of a format; d is its dialect, "" for that of the model's name.
func For(f session.Format, d Dialect, model string) *Facts {
	if d != "" {
		return In(f, d)
	}
	server := In(f, DialectOf(f, model))
	if passesLists(f, server, model) {
		return passed[server.Dialect]
	}
	return server
}
