package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// Writers are the models that write summaries, by the operator's names. What a caller sends is resolved with them: it
// must name one of them, and set no text that no model would read. What is stored is resolved by a nil *Writers, which
// does not ask: it was made when the operator had other models, or by an earlier release, and stays in force.
type Writers []string

// Resolve resolves layers, like the function Resolve. The topmost is as a caller has sent it.
func (w *Writers) Resolve(tenant, own json.RawMessage, pointer string) (Policy, Sources, error) {
	return parseLayers(w, layersOf(tenant, own, pointer))
}

// ResolveStored resolves, like Resolve, a policy that is to be stored.
func (w *Writers) ResolveStored(tenant, own json.RawMessage, pointer string) (session.Policy, error) {
	p, _, err := w.Resolve(tenant, own, pointer)
	if err != nil {
		return session.Policy{}, err
	}
	stored := p.Stored()
	if stored.Patch = canonical(tenant); own != nil {
		stored.Patch = canonical(own)
	}
	return stored, nil
}

const model = "/summarise/model"

// readers are the fields that are for a model alone, with the styles that read them.
var readers = []struct {
	pointer string
	styles  []Style
	isEmpty func(*Summarise) bool
}{
	{"/summarise/prompt", []Style{Sections, CodeliaPrompt, FalaiPrompt, CortexPrompt},
		func(s *Summarise) bool { return s.Prompt == "" }},
	{"/summarise/directives", []Style{Sections, CodeliaPrompt},
		func(s *Summarise) bool { return len(s.Directives) == 0 }},
	{"/summarise/retain_prompt", []Style{Sections, CodeliaPrompt},
		func(s *Summarise) bool { return s.RetainPrompt == "" }},
	{"/summarise/retain_directives", []Style{Sections, CodeliaPrompt},
		func(s *Summarise) bool { return len(s.RetainDirectives) == 0 }},
}

// summaries checks that the model of a layer that is sent is there, and that it reads what the layer sets for it.
func (p *parser) summaries() {
	if p.writers == nil || p.bad[model] {
		return
	}
	s := &p.policy.Summarise
	if name := s.Model; name != "" && p.isSent(model) && !slices.Contains(*p.writers, name) {
		p.problem(model, UnknownValue, "%s", p.writers.lacks(name))
		return
	}
	if p.isSent("/summarise/style") && s.Style != Sections && s.Model == "" {
		p.unread("/summarise/style", "a style is how a model is asked, and no model is: set summarise.model")
	}
	for _, field := range readers {
		switch {
		case !p.isSent(field.pointer) || field.isEmpty(s):
		case s.Model == "":
			p.unread(field.pointer, "no model would read it, for none is asked: set summarise.model to the name of one"+
				", or leave it out")
		case !slices.Contains(field.styles, s.Style):
			p.unread(field.pointer, fmt.Sprintf("no model would read it, for style %s has no place for it: "+
				"set summarise.style to sections, or leave it out", s.Style))
		case strings.HasPrefix(field.pointer, "/summarise/retain_") && !s.Retain:
			p.unread(field.pointer, "no model would read it, for none is asked for facts: set summarise.retain to true"+
				", or leave it out")
		}
	}
}

func (p *parser) isSent(pointer string) bool { return p.sources[pointer] == p.layer.Name }

func (p *parser) unread(pointer, detail string) {
	if !p.bad[pointer] {
		p.problem(pointer, Contradiction, "%s", detail)
	}
}

// lacks returns what is wrong with the name of a model that is not there.
func (w Writers) lacks(name string) string {
	if len(w) == 0 {
		return fmt.Sprintf("there is no model %q, for the operator has configured none: leave it out, and the summary "+
			"is written without a model", spelling.Shorten(name))
	}
	return fmt.Sprintf("there is no model %q%s; GET /v1/models/summaries lists them", spelling.Shorten(name),
		spelling.Hint(name, w))
}
