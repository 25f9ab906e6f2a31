package foreign

import "math"

// below is how far the target of falai lies below its threshold: a session at its threshold is compacted.
const below = 0.01

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
	case "llm-proxy":
		if threshold, ok := t.patch["trigger_tokens"].(int); ok && threshold > 1 {
			t.put("/target_tokens", threshold-1, t.pointers["/trigger_tokens"])
		}
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
	const hard = 0.95
	trigger, _ := t.patch["trigger"].(float64)
	if trigger > hard && trigger <= 1 {
		t.put("/hard", trigger, t.pointers["/trigger"])
	}
	return trigger
}
