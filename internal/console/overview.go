package console

import (
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
	Running  []recompaction // that have not ended
	Regret   *float64       // what was read back by 1,000 views
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

const (
	overviewDays = 30
	chartHeight  = 160.0
	dayWidth     = 30
)

func showOverview(v *visit) error {
	if isOperator(v.in.Key) {
		return showWorst(v)
	}
	used, err := client.Route[protocol.Usage]("GET usage").Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	page := overviewPage{Use: used.Value.Total, From: used.Value.From, To: used.Value.To}
	page.draw(used.Value)
	if page.Use.Views > 0 {
		page.Regret = new(1000 * float64(page.Use.ReadBacks) / float64(page.Use.Views))
	}
	state, err := client.Route[session.State]("GET usage/state").Call(v.ctx, v.api)
	if err != nil {
		return err
	}
	page.State = state.Value
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

// draw makes the chart and the table of the days. Days without use have no row, but a place in the chart.
func (p *overviewPage) draw(used protocol.Usage) {
	byDay := map[string]protocol.DayOfUse{}
	for _, d := range used.Data {
		byDay[d.Day] = d
		p.Rows = append([]protocol.DayOfUse{d}, p.Rows...)
		p.Largest = max(p.Largest, d.TokensServed+d.TokensSaved)
	}
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
