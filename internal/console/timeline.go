package console

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/session"
)

// timelinePage shows how a session has grown, and how compactions have cut it.
type timelinePage struct {
	sessionHead
	Overs []link // what the plots can be drawn over
	Over  over
	View  plot // the view, beside what the policy says of it
	Log   plot // the log, and the view below it
	Card  card
	Spent moment // at the end
	Made  []cut  // the newest checkpoint first
	Empty bool
}

// growthPoints is how many points of the log's growth are asked for, and shownCheckpoints how many checkpoints.
const (
	growthPoints     = 300
	shownCheckpoints = 300
)

// over is what plots are drawn over.
type over struct {
	Name, Word, Says string
	of               func(moment) float64
}

var overs = []over{
	{"messages", "Messages", "over the messages of the log", func(m moment) float64 { return m.Seq }},
	{"time", "Time", "over the time since the first message", func(m moment) float64 { return float64(m.After) }},
	{"cost", "Cost", "over what the requests have cost, in input tokens", func(m moment) float64 { return m.Cost }},
}

func showTimeline(v *visit) error {
	h, err := v.head("timeline")
	if err != nil {
		return err
	}
	id := h.Session.ID
	q := client.Query{"points": growthPoints}
	grown, err := client.ReadTimeline.With(v.ctx, v.api, client.Options{Query: q}, id)
	if err != nil {
		return err
	}
	found, err := client.ListCheckpoints.All(v.ctx, v.api, shownCheckpoints, id)
	if err != nil {
		return err
	}
	checkpoints := make([]session.CheckpointRecord, len(found))
	for i := range found {
		checkpoints[len(found)-1-i] = found[i].Value
	}
	page := timelinePage{sessionHead: h, Card: cardOf(h.Session.Policy), Empty: len(grown.Value.Data) == 0}
	page.choose(v.r.URL.Query().Get("over"))
	if !page.Empty {
		page.draw(grown.Value.Data, checkpoints)
	}
	return v.show("sessions", "Timeline of "+id, "timeline.html", &page)
}

// choose sets what the plots are drawn over.
func (page *timelinePage) choose(name string) {
	page.Over = overs[0]
	for _, o := range overs {
		if o.Name == name {
			page.Over = o
		}
		page.Overs = append(page.Overs, link{"?over=" + o.Name, o.Word, false})
	}
	for i := range page.Overs {
		page.Overs[i].Here = overs[i].Name == page.Over.Name
	}
}

// draw makes the plots, and the list of checkpoints below them.
func (page *timelinePage) draw(log growth, checkpoints []session.CheckpointRecord) {
	moments, cuts := log.moments(checkpoints, page.Card)
	page.Spent = moments[len(moments)-1]
	unit, name := 1.0, ""
	if page.Over.Name == "time" {
		per, word := unitOf(page.Spent.After)
		unit, name = float64(per), word
	}
	line := func(tokens func(moment) float64) (points []xy) {
		for _, m := range moments {
			points = append(points, xy{page.Over.of(m) / unit, tokens(m)})
		}
		return points
	}
	teeth := line(func(m moment) float64 { return m.View })
	all := line(func(m moment) float64 { return m.Log })
	widest := teeth[len(teeth)-1].X
	page.View = newPlot(widest, max(float64(page.Bar.Window), highest(teeth)), name)
	page.View.line("view", teeth)
	for name, at := range map[string]int64{
		"target": page.Bar.Target, "trigger": page.Bar.Trigger, "hard": page.Bar.Hard, "window": page.Bar.Window,
	} {
		page.View.level(name, at)
	}
	page.Log = newPlot(widest, highest(all), name)
	page.Log.line("log", all)
	page.Log.line("view", teeth)
	for _, c := range cuts {
		page.View.mark(page.Over.of(c.moment)/unit, c.N, pathOf("sessions", page.Session.ID, "checkpoints", c.N))
	}
	slices.Reverse(cuts)
	page.Made = cuts
}

// growth is the sizes of a log at some of its messages, in order.
type growth []session.Growth

// sizes are those of a log at one of its messages. InView are the tokens in a view that nothing has left.
type sizes struct {
	Tokens, InView, Requests float64
	At                       time.Time
}

// at returns the sizes of the log through a seq, as far as the points tell.
func (g growth) at(seq float64) (s sizes) {
	before := session.Growth{At: g[0].At}
	for _, p := range g {
		share := min((seq-float64(before.Seq))/float64(p.Seq-before.Seq), 1)
		part := func(from, to int64) float64 { return float64(from) + share*float64(to-from) }
		s = sizes{part(before.Tokens, p.Tokens), part(before.ViewTokens, p.ViewTokens),
			part(before.Requests, p.Requests), before.At.Add(time.Duration(share * float64(p.At.Sub(before.At))))}
		if float64(p.Seq) >= seq {
			break
		}
		before = p
	}
	return s
}

// seqAt returns the last message that was there when a checkpoint was made, as far as the points tell.
func (g growth) seqAt(c *session.CheckpointRecord) float64 {
	last := c.Through
	for _, p := range g {
		if p.At.Before(c.CreatedAt) {
			last = max(last, p.Seq)
		}
	}
	return float64(last)
}

// card has the prices of input tokens that a policy names, in those of one that no cache holds.
type card struct{ Read, Write float64 }

// cardOf returns the price card of a policy; one that this version does not understand has no cache.
func cardOf(document json.RawMessage) card {
	p := effective(document)
	if p == nil {
		return card{1, 1}
	}
	return card{p.Economy.CacheRead, p.Economy.CacheWrite}
}

// of returns what a number of requests cost while a view grows, if the cache never expires: each reads what the one
// before has written, and writes what is new.
func (c card) of(requests, from, to float64) float64 {
	return requests*c.Read*(from+to)/2 + (c.Write-c.Read)*max(to-from, 0)
}

// moment is a session at one time of its life.
type moment struct {
	Seq       float64
	After     time.Duration // since the first message
	Log, View float64       // tokens
	Requests  float64
	Cost      float64 // of all requests so far, in input tokens that no cache holds
	Whole     float64 // the same if every view had been the log
}

// cut is a checkpoint with what it did to the cache of the provider.
type cut struct {
	moment  // right after it
	N       int
	At      time.Time
	Before  float64 // tokens of the view
	Kept    *int64  // tokens of the view's beginning that is still in the cache, nil if nobody counted
	Rewrite float64 // what it costs to write the rest again, in input tokens
	Saves   float64 // what each request costs less, in input tokens
}

// Broken returns how many tokens of the view are not in the cache any more.
func (c *cut) Broken() float64 {
	if c.Kept == nil {
		return c.View
	}
	return max(c.View-float64(*c.Kept), 0)
}

// PaidBack returns after how many requests the checkpoint has saved what it cost, 0 for never.
func (c *cut) PaidBack() float64 {
	if c.Saves <= 0 {
		return 0
	}
	return c.Rewrite / c.Saves
}

// moments returns the life of a session: it grows with every message, and each checkpoint cuts it.
func (g growth) moments(checkpoints []session.CheckpointRecord, card card) (list []moment, cuts []cut) {
	l := life{log: g, card: card, list: []moment{{}}}
	for _, p := range g {
		for len(checkpoints) > 0 && g.seqAt(&checkpoints[0]) <= float64(p.Seq) {
			l.cut(&checkpoints[0])
			checkpoints = checkpoints[1:]
		}
		l.grow(float64(p.Seq))
	}
	return l.list, l.cuts
}

// life goes through the moments of a session.
type life struct {
	log     growth
	card    card
	now     moment
	through float64 // the last message that the newest checkpoint covers
	tokens  float64 // of that checkpoint
	list    []moment
	cuts    []cut
}

// grow continues to a seq. Each request reads the view before it from the cache, and what is new is written to it.
func (l *life) grow(seq float64) {
	s, before := l.log.at(seq), l.now
	l.now = moment{Seq: seq, After: s.At.Sub(l.log[0].At), Log: s.Tokens, Requests: s.Requests, View: l.view(s)}
	requests := l.now.Requests - before.Requests
	l.now.Cost = before.Cost + l.card.of(requests, before.View, l.now.View)
	l.now.Whole = before.Whole + l.card.of(requests, before.Log, l.now.Log)
	l.list = append(l.list, l.now)
}

func (l *life) view(s sizes) float64 { return l.tokens + s.InView - l.log.at(l.through).InView }

// cut makes a checkpoint, behind whose kept beginning the cache is written again.
func (l *life) cut(c *session.CheckpointRecord) {
	l.grow(l.log.seqAt(c))
	made := cut{N: c.N, At: c.CreatedAt, Before: l.now.View, Kept: c.Kept}
	l.through, l.tokens = float64(c.Through), float64(c.Tokens)
	l.now.View = l.view(l.log.at(l.now.Seq))
	l.now.After = max(l.now.After, c.CreatedAt.Sub(l.log[0].At))
	made.moment = l.now
	made.Rewrite = made.Broken() * (l.card.Write - l.card.Read)
	made.Saves = (made.Before - made.View) * l.card.Read
	l.now.Cost += made.Rewrite
	l.list, l.cuts = append(l.list, l.now), append(l.cuts, made)
}
