package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// entryOfLiteLLM is what is read of an entry of LiteLLM's list of models
// (https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json).
type entryOfLiteLLM struct {
	Provider  string      `json:"litellm_provider"`
	Mode      string      `json:"mode"`
	MaxInput  json.Number `json:"max_input_tokens"`
	MaxOutput json.Number `json:"max_output_tokens"`
	MaxTokens json.Number `json:"max_tokens"`
}

// modesOfLiteLLM are those of models that hold conversations.
var modesOfLiteLLM = []string{"chat", "responses", "completion"}

// isLiteLLM reports whether a document is LiteLLM's list: an object of entries by name, which have a provider. It may
// have other members, too.
func isLiteLLM(document []byte) bool {
	var entries map[string]json.RawMessage
	if json.Unmarshal(document, &entries) != nil {
		return false
	}
	if _, ours := entries["models"]; ours {
		return false
	}
	for _, entry := range entries {
		if bytes.Contains(entry, []byte(`"litellm_provider"`)) {
			return true
		}
	}
	return false
}

// extendLiteLLM merges LiteLLM's list over the registry: an entry has the window, and what is known of the model that
// its name means stays. The list is taken as it is: entries without a number, and of models that hold no conversation,
// are passed over.
func (r *Registry) extendLiteLLM(document []byte) (*Registry, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(document, &raw); err != nil {
		return nil, err
	}
	listed, taken := map[string]bool{}, map[string]bool{} // names in lower case
	for name := range raw {
		listed[strings.ToLower(name)] = true
	}
	var own []Model
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var e entryOfLiteLLM
		if json.Unmarshal(raw[name], &e) != nil || !slices.Contains(modesOfLiteLLM, e.Mode) {
			continue // sample_spec has texts for numbers
		}
		input := number(cmp.Or(e.MaxInput, e.MaxTokens))
		if input < minContext || input > maxContext || len(name) > 255 {
			continue
		}
		if taken[strings.ToLower(name)] {
			continue // it is listed twice
		}
		taken[strings.ToLower(name)] = true
		m, known := r.Find(name)
		m.Aliases = slices.DeleteFunc(slices.Clone(m.Aliases), func(alias string) bool {
			return listed[strings.ToLower(alias)]
		})
		if known && !strings.EqualFold(m.ID, name) {
			m.SameAs, m.Aliases = cmp.Or(m.SameAs, m.ID), nil
		}
		m.ID, m.Provider = name, cmp.Or(m.Provider, e.Provider)
		m.ContextTokens = max(input, m.MaxInputTokens, m.ContextTokens)
		m.MaxInputTokens = input
		m.MaxOutputTokens = min(number(e.MaxOutput), m.ContextTokens)
		m.Sources = append(slices.DeleteFunc(slices.Clone(m.Sources), func(s Source) bool { return s.Of == "window" }),
			Source{Of: "window", Name: "LiteLLM"})
		own = append(own, m)
	}
	return build(r.providers, r.families, r.models, own)
}

// number returns a whole number, 0 for anything else.
func number(n json.Number) int {
	f, err := n.Float64()
	if err != nil || f < 0 || f > maxContext {
		return 0
	}
	return int(f)
}
