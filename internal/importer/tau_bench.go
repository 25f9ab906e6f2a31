package importer

import "github.com/varve-dev/varve/internal/session"

// TauBench is tau-bench's runs.
const TauBench Source = "tau-bench"

// The messages of a run are Chat Completions', as they are: ids of calls repeat inside a run, and are kept.
var tauBench = source{
	name:   TauBench,
	title:  "tau-bench's runs",
	detect: func(s sample) bool { return s.object.has("traj") || s.object == nil && s.first.has("traj") },
	read:   readTauBench,
}

func readTauBench(f *File, id string, data []byte) error {
	for run := range f.runs(data) {
		messages := f.convert(f.elements(f.list(run, "traj")), func(e entry) ([][]byte, error) {
			if e.text("role") == "" {
				return nil, errNoRole
			}
			return [][]byte{e.raw}, nil
		})
		f.add(id, session.OpenAIChat, messages)
	}
	return nil
}
