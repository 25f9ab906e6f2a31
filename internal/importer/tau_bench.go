package importer

// The messages of a run are OpenAI Chat's, as they are: ids of calls repeat inside a run, and are kept.
var tauBench = source{
	name:     TauBench,
	title:    "tau-bench's runs",
	detect:   func(s sample) bool { return s.object.has("traj") || s.object == nil && s.first.has("traj") },
	into:     OpenAIChat,
	required: "role",
	runs:     &layout{list: listed("traj")},
	open:     perRecord(asItIs),
}

// asItIs returns a record as a message.
func asItIs(e entry) ([][]byte, error) { return [][]byte{e.raw}, nil }
