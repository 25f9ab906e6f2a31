package console

import (
	"slices"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// overviewPage is what a tenant has used in the last days, and what needs somebody.
type overviewPage struct {
	Use      session.Use
	Days     []usedDay
	Rows     []protocol.DayOfUse // newest first
	State    session.State
	Hours    []hourOfRuns   // newest first
	Running  []recompaction // that have not ended
	Regret   *float64       // what was read back by 1,000 results that left views, in the last regretDays
	Results  int64          // that left then
	Largest  int64          // of Days
	From, To string
}

// usedDay is a bar of the chart: tokens that were served, and that were saved, on a day.
type usedDay struct {
	Day           string
	X             int
	Served, Saved float64 // heights
	ServedTokens  int64
	SavedTokens   int64
}

// hourOfRuns is a bar of the chart of compactions, from below: done, without a change, failed.
type hourOfRuns struct {
	session.HourOfRuns
	X                   int
	DoneH, SameH, FailH float64 // heights
}

const (
	overviewDays = 30
	chartHeight  = 160.0
	dayWidth     = 30

	regretDays = 7 // about as many as the API counts runs of

	chartHours = 24
	hourWidth  = 37
)

func showOverview(v *visit) error {
	if isOperator(v.in.Key) {
		return showAll(v)
	}
	used, err := client.Route[protocol.Usage]("GET usage").Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	page := overviewOf(used.Value)
	state, err := client.Route[session.State]("GET usage/state").Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	page.State = state.Value
	now := time.Now().UTC()
	// Reads are counted by day, runs by hour.
	hours := client.Options{Query: client.Query{"hours": 24*(regretDays-1) + now.Hour() + 1}}
	runs, err := client.ReadRunsByHour.With(v.ctx, v.api, hours)
	if err != nil {
		return err
	}
	page.regret(used.Value.Data, runs.Value.Data, now)
	page.Hours = hoursOf(runs.Value.Data, now)
	begun, err := listRecompactions.All(v.ctx, v.api, 20)
	if err != nil {
		return err
	}
	for _, r := range begun {
		if r.Value.FinishedAt == nil {
			page.Running = append(page.Running, r.Value)
		}
	}
	return v.show("overview", "Overview", "overview.html", &page)
}

// overviewOf returns the page with what was used.
func overviewOf(used protocol.Usage) overviewPage {
	page := overviewPage{Use: used.Total, From: used.From, To: used.To}
	page.draw(used)
	return page
}

// regret sets how much of what left the views was read back.
func (p *overviewPage) regret(days []protocol.DayOfUse, runs []session.HourOfRuns, now time.Time) {
	first, read := now.AddDate(0, 0, 1-regretDays).Format(time.DateOnly), int64(0)
	for _, d := range days {
		if d.Day >= first {
			read += d.ReadBacks
		}
	}
	for i := range runs {
		p.Results += runs[i].Results
	}
	if p.Results > 0 {
		p.Regret = new(1000 * float64(read) / float64(p.Results))
	}
}

// draw makes the chart and the table of the days. Days without use have no row, but a place in the chart.
func (p *overviewPage) draw(used protocol.Usage) {
	byDay := map[string]protocol.DayOfUse{}
	for _, d := range used.Data {
		byDay[d.Day] = d
		p.Largest = max(p.Largest, d.TokensServed+d.TokensSaved)
	}
	p.Rows = slices.Clone(used.Data)
	slices.Reverse(p.Rows)
	last, err := time.Parse(time.DateOnly, used.To)
	if err != nil || p.Largest == 0 {
		return
	}
	for i := range overviewDays {
		d := byDay[last.AddDate(0, 0, i+1-overviewDays).Format(time.DateOnly)]
		height := func(tokens int64) float64 { return chartHeight * float64(tokens) / float64(p.Largest) }
		p.Days = append(p.Days, usedDay{
			Day: d.Day, X: i * dayWidth, Served: height(d.TokensServed), Saved: height(d.TokensSaved),
			ServedTokens: d.TokensServed, SavedTokens: d.TokensSaved,
		})
	}
}

// Top returns where the bar of a day begins: what was saved is above what was served.
func (d usedDay) Top() float64 { return chartHeight - d.Served - d.Saved }

// Base returns where its part that was served begins.
func (d usedDay) Base() float64 { return chartHeight - d.Served }

// hoursOf makes the chart of the last hours, of which those without runs have a place only.
func hoursOf(runs []session.HourOfRuns, now time.Time) (list []hourOfRuns) {
	highest := int64(1)
	for i := range runs {
		r := &runs[i]
		highest = max(highest, r.Done+r.Unchanged+r.Postponed+r.Failed)
	}
	height := func(n int64) float64 { return chartHeight * float64(n) / float64(highest) }
	for _, r := range slices.Backward(runs) {
		ago := int(now.Truncate(time.Hour).Sub(r.Hour) / time.Hour)
		if ago >= chartHours {
			break
		}
		list = append(list, hourOfRuns{
			HourOfRuns: r, X: (chartHours - 1 - ago) * hourWidth, DoneH: height(r.Done),
			SameH: height(r.Unchanged + r.Postponed), FailH: height(r.Failed),
		})
	}
	return list
}

// DoneY returns where the bar of runs that made a checkpoint begins.
func (h *hourOfRuns) DoneY() float64 { return chartHeight - h.DoneH }

// SameY returns where the bar of runs without a change begins.
func (h *hourOfRuns) SameY() float64 { return h.DoneY() - h.SameH }

// FailY returns where the bar of failed runs begins.
func (h *hourOfRuns) FailY() float64 { return h.SameY() - h.FailH }
