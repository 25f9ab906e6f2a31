package importer

// A run of LangSmith is a span of a trace. One of type llm is a call of a model: its inputs have the messages so far,
// its outputs the answer. Runs come as JSON lines, in a list, with runs in them (child_runs), and as what its SDKs send
// (post and patch, where the patch of a run adds its outputs). Runs of other types are counted by type.
var langSmith = source{
	name:  LangSmith,
	title: "LangSmith's runs",
	detect: marked(
		langSmithRun, under("0", langSmithRun), under("runs.0", langSmithRun), under("traces.0", langSmithRun),
		under("post.0", langSmithRun),
	),
	read: readLangSmith,
}

const langSmithRun = "run_type inputs|outputs trace_id|dotted_order|parent_run_id|start_time|child_runs|name"

func readLangSmith(f *File, id string, data []byte) error {
	l := &langSmithLog{traceLog: traceLog{file: f}}
	for e := range f.records(data) {
		list := parseArray(e.first("runs", "traces", "post"))
		if list == nil {
			l.run(e, true)
			continue
		}
		patches := langSmithPatches(e.object["patch"])
		for inner := range f.elements(list) {
			patch := patches[inner.text("id")]
			if patch == nil && len(list) == 1 {
				patch = patches[""]
			}
			if len(parseObject(inner.object["outputs"])) == 0 && patch.has("outputs") {
				inner.object["outputs"] = patch["outputs"]
			}
			l.run(inner, true)
		}
	}
	l.finish(id)
	return nil
}

// langSmithLog is a file being read.
type langSmithLog struct {
	traceLog
	runs int // read so far: the place of a run, as runs are in each other
}

// langSmithPatches returns the patches of runs by their ids. One alone may have none.
func langSmithPatches(raw []byte) map[string]object {
	patches := map[string]object{}
	for patch := range objects(raw) {
		patches[patch.text("id")] = patch
	}
	return patches
}

// run adds a run and the runs in it. The outermost is the root of its trace, unless it names another as its parent.
func (l *langSmithLog) run(e entry, outermost bool) {
	l.runs++
	e.line = l.runs
	kind := e.text("run_type")
	x := exchange{
		entry: e, trace: e.text("trace_id"), kind: "run of type " + kind,
		input: e.object["inputs"], output: e.object["outputs"], at: moment(e.object["start_time"]),
	}
	switch {
	case kind == "llm" && (has(x.input) || has(x.output)):
		l.calls = append(l.calls, x)
	case outermost && !e.has("parent_run_id") && (has(x.input) || has(x.output)):
		l.roots = append(l.roots, x)
	default:
		l.file.count(e, skipped(x.kind))
	}
	for inner := range l.file.elements(parseArray(e.object["child_runs"])) {
		if !inner.has("trace_id") {
			inner.object["trace_id"] = e.object["trace_id"]
		}
		l.run(inner, false)
	}
}
