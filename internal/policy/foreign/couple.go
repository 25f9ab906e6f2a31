package foreign

import (
	"math"
	"slices"
)

// below is how far the target of falai lies below its threshold: a session at its threshold is compacted.
const below = 0.01

// hard is the hard limit of a profile that sets none.
const hard = 0.95

// couple sets the fields that follow from others: in Varve they are settings of their own.
func (t *translator) couple() {
	switch t.System {
	case "cortex":
		t.coupleFloor()
	case "falai":
		if at := t.coupleTrigger(); at > 0 {
			t.put("/target", math.Round((at-below)*1e6)/1e6, t.pointers["/trigger"])
		}
	case "codelia":
		t.coupleTrigger()
		t.coupleModel()
	case "llm-proxy":
		if threshold, ok := t.patch["trigger_tokens"].(int); ok && threshold > 1 {
			t.put("/target_tokens", threshold-1, t.pointers["/trigger_tokens"])
			t.coupleWindow(threshold)
		}
	}
}

// coupleWindow raises the hard limit to a threshold that is nearer to the window, but not above the window.
func (t *translator) coupleWindow(threshold int) {
	if t.Window == 0 || float64(threshold) <= hard*float64(t.Window) {
		return
	}
	share := float64(threshold) / float64(t.Window)
	t.put("/hard", min(share, 1), t.pointers["/trigger_tokens"])
	if share > 1 {
		at := slices.IndexFunc(t.Translated, func(s Setting) bool { return slices.Contains(s.Fields, "window_tokens") })
		t.Translated[at].Why += "; below the threshold: a session is compacted from this size on"
	}
}

// coupleFloor makes what cortex trims from its floor on work towards the floor, as far as that is below the trigger.
func (t *translator) coupleFloor() {
	const lowest, trigger = 0.00001, 0.7
	trim, _ := t.patch["trim"].(map[string]any)
	if floor, ok := trim["floor_ratio"].(float64); ok && floor < trigger {
		t.put("/target", max(floor, lowest), t.pointers["/trim/floor_ratio"])
	}
}

// coupleTrigger raises the hard limit to a trigger above it, and returns the trigger; 0 if the file has none.
func (t *translator) coupleTrigger() float64 {
	trigger, _ := t.patch["trigger"].(float64)
	if trigger > hard && trigger <= 1 {
		t.put("/hard", trigger, t.pointers["/trigger"])
	}
	return trigger
}

// coupleModel takes out what codelia asks the session's own model for, if the file names none: Varve asks the model
// that a policy names.
func (t *translator) coupleModel() {
	summarise, _ := t.patch["summarise"].(map[string]any)
	if name, _ := summarise["model"].(string); name != "" {
		return
	}
	for _, field := range []string{"prompt", "directives", "retain_prompt", "retain_directives"} {
		if _, set := summarise[field]; !set {
			continue
		}
		delete(summarise, field)
		at := slices.IndexFunc(t.Translated, func(s Setting) bool {
			return slices.Contains(s.Fields, "summarise."+field)
		})
		t.Omitted = append(t.Omitted, Setting{
			Name: t.Translated[at].Name,
			Why:  "no model would read it: name one in model, as GET /v1/models/summaries lists them",
		})
		t.Translated = slices.Delete(t.Translated, at, at+1)
	}
	if len(summarise) == 0 {
		delete(t.patch, "summarise")
	}
}
