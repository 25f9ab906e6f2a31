package importer

import (
	"cmp"
	"strings"
)

// An export of Langfuse has traces, each with its observations, in any of the shapes that its interface, its API and
// its export to a bucket write: a trace alone or beside its observations, lists of either, JSON lines. An observation
// of type GENERATION is a call of a model: its input has the messages so far. The others are counted by type.
var langfuse = source{
	name:  Langfuse,
	title: "Langfuse's traces and observations",
	detect: marked(
		"trace observations[]", "observations[] projectId|htmlPath|timestamp", langfuseObservation, langfuseTrace,
		under("0", langfuseObservation), under("0", langfuseTrace), under("data.0", langfuseObservation),
		under("data.0", langfuseTrace), "0.trace 0.observations[]",
		under("0", "observations[] projectId|htmlPath|timestamp"),
		"traces.0.projectId traces.0.timestamp",
	),
	read: readLangfuse,
}

const (
	langfuseObservation = "type=GENERATION|SPAN|EVENT|AGENT|TOOL|CHAIN|RETRIEVER|EVALUATOR|EMBEDDING|GUARDRAIL " +
		"traceId|trace_id"
	langfuseTrace = "id timestamp input|output bookmarked|htmlPath|projectId|project_id|totalCost|observationCount"
)

// under returns a pattern for a member: each of its names is one of that member's.
func under(member, pattern string) string {
	var all []string
	for condition := range strings.FieldsSeq(pattern) {
		name, values, isText := strings.Cut(condition, "=")
		names := strings.Split(name, "|")
		for i := range names {
			names[i] = member + "." + names[i]
		}
		condition = strings.Join(names, "|")
		if isText {
			condition += "=" + values
		}
		all = append(all, condition)
	}
	return strings.Join(all, " ")
}

func readLangfuse(f *File, id string, data []byte) error {
	l := &traceLog{file: f}
	for e := range f.records(data) {
		list := parseArray(e.first("data", "traces"))
		if list == nil {
			l.langfuse(e)
			continue
		}
		for inner := range f.elements(list) {
			l.langfuse(inner)
		}
	}
	l.finish(id)
	return nil
}

// langfuse adds a trace with its observations, or an observation.
func (l *traceLog) langfuse(e entry) {
	if e.has("type") && e.first("traceId", "trace_id") != nil {
		l.observation(e, "")
		return
	}
	trace := e
	if o := parseObject(e.object["trace"]); o != nil {
		trace.object, trace.raw = o, e.object["trace"]
	}
	l.roots = append(l.roots, exchange{
		entry: trace, trace: trace.text("id"), kind: "trace", at: moment(trace.first("timestamp")),
		input: trace.object["input"], output: trace.object["output"],
	})
	for inner := range l.file.elements(parseArray(e.object["observations"])) {
		if !inner.has("type") {
			l.file.count(inner, skipped("id of an observation"))
			continue
		}
		l.observation(inner, trace.text("id"))
	}
}

// observation adds an observation, which may leave out the id of the trace that it stands in.
func (l *traceLog) observation(e entry, trace string) {
	x := exchange{
		entry: e, kind: "observation of type " + e.text("type"),
		trace: cmp.Or(e.text("traceId"), e.text("trace_id"), trace),
		input: e.object["input"], output: e.object["output"], at: moment(e.first("startTime", "start_time")),
	}
	switch {
	case e.text("type") != "GENERATION":
		l.file.count(e, skipped(x.kind))
	case !has(x.input) && !has(x.output):
		l.file.count(e, skipped(x.kind+" without input and output"))
	default:
		l.calls = append(l.calls, x)
	}
}
