package console

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/compact"
	"github.com/varve-dev/varve/internal/session"
)

// runsPage lists the compactions of a session, the newest first.
type runsPage struct {
	sessionHead
	Runs []listedRun
	Next string
}

// listedRun is a run with the stages that failed, so that the compaction continued without them, and why.
type listedRun struct {
	session.Run
	Failed []string
}

// report is what the console shows of a run's report.
type report struct {
	Reasons   map[string]float64 `json:"reasons"`
	Decisions struct {
		ByReason map[string]float64 `json:"by_reason"`
	} `json:"decisions"`
	KeptPrefix prefix   `json:"kept_prefix"`
	FailedOpen []string `json:"failed_open"`
}

// reportIn reads a report. Of one of another version a page shows what it understands.
func reportIn(run *session.Run) (r report) {
	_ = json.Unmarshal(run.Report, &r)
	return r
}

func showRuns(v *visit) error {
	h, err := v.head("runs")
	if err != nil {
		return err
	}
	page := runsPage{sessionHead: h}
	found, next, err := list(v, client.ListRuns, nil, h.Session.ID)
	if err != nil {
		return err
	}
	page.Next = next
	for i := range found {
		page.Runs = append(page.Runs, listedRun{found[i], reportIn(&found[i]).FailedOpen})
	}
	return v.show("sessions", "Runs of "+h.Session.ID, "runs.html", &page)
}

// runPage is one compaction: why it ran, and what it did.
type runPage struct {
	sessionHead
	Run     session.Run
	Stages  []compact.StageReport
	Timings []counted // milliseconds by step
	Reasons []counted // parts by the field of the policy that decided
	Decided []counted // results by what was decided
	Prefix  prefix
	Failed  []string // stages that failed, so that the compaction continued without them
	Why     string   // the figures of the decision
}

// prefix is the beginning of the view that kept the provider's cache.
type prefix struct {
	Tokens int64   `json:"tokens"`
	Share  float64 `json:"share"`
}

// counted is a name with a number.
type counted struct {
	Name string
	N    float64
}

// ranked returns what was counted, the largest number first.
func ranked(of map[string]float64) (list []counted) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, counted{name, of[name]})
	}
	slices.SortStableFunc(list, func(a, b counted) int { return cmp.Compare(b.N, a.N) })
	return list
}

func showRun(v *visit) error {
	h, err := v.head("runs")
	if err != nil {
		return err
	}
	read, err := client.ReadRun.Call(v.ctx, v.api, h.Session.ID, v.r.PathValue("run"))
	if err != nil {
		return err
	}
	run := read.Value
	report, timings := reportIn(&run), map[string]float64{}
	page := runPage{sessionHead: h, Run: run}
	_ = json.Unmarshal(run.Timings, &timings)
	_ = json.Unmarshal(run.Stages, &page.Stages)
	page.Reasons, page.Decided = ranked(report.Reasons), ranked(report.Decisions.ByReason)
	page.Prefix, page.Failed = report.KeptPrefix, report.FailedOpen
	page.Timings, page.Why = ranked(timings), indented(run.Why)
	return v.show("sessions", "Run of "+h.Session.ID, "run.html", &page)
}
