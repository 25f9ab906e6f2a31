package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/session"
)

// timelinePage shows how a session has grown, and how compactions have cut it.
type timelinePage struct {
	sessionHead
	View  plot // the view, beside what the policy says of it
	Log   plot // the log, and the view below it
	Empty bool
}

// growthPoints is how many points of the log's growth are asked for, and shownCheckpoints how many checkpoints.
const (
	growthPoints     = 300
	shownCheckpoints = 300
)

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
	page := timelinePage{sessionHead: h, Empty: len(grown.Value.Data) == 0}
	log := growth(grown.Value.Data)
	teeth := log.sawTooth(checkpoints)
	page.View = newPlot(float64(h.Session.LastSeq), max(float64(h.Bar.Window), highest(teeth)))
	page.View.line("view", teeth)
	for name, at := range map[string]int64{
		"target": h.Bar.Target, "trigger": h.Bar.Trigger, "hard": h.Bar.Hard, "window": h.Bar.Window,
	} {
		page.View.level(name, at)
	}
	for i := range checkpoints {
		c := &checkpoints[i]
		page.View.mark(log.seqAt(c), c.N, pathOf("sessions", id, "checkpoints", c.N))
	}
	all := log.line()
	page.Log = newPlot(float64(h.Session.LastSeq), highest(all))
	page.Log.line("log", all)
	page.Log.line("view", teeth)
	return v.show("sessions", "Timeline of "+id, "timeline.html", &page)
}

// growth is the sizes of a log at some of its messages, in order.
type growth []session.Growth

// xy is a point of a line: a seq and tokens.
type xy struct{ X, Y float64 }

func (g growth) line() []xy {
	points := []xy{{}}
	for _, p := range g {
		points = append(points, xy{float64(p.Seq), float64(p.Tokens)})
	}
	return points
}

// shown returns the tokens that the messages through a seq have in a view that nothing has left.
func (g growth) shown(seq float64) float64 {
	before := session.Growth{}
	for _, p := range g {
		if float64(p.Seq) >= seq {
			share := (seq - float64(before.Seq)) / float64(p.Seq-before.Seq)
			return float64(before.ViewTokens) + share*float64(p.ViewTokens-before.ViewTokens)
		}
		before = p
	}
	return float64(before.ViewTokens)
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

// sawTooth returns the size of the view over the log: it grows with every message, and each checkpoint cuts it.
func (g growth) sawTooth(checkpoints []session.CheckpointRecord) []xy {
	points := []xy{{}}
	through, tokens := 0.0, 0.0
	add := func(seq float64) {
		points = append(points, xy{seq, tokens + g.shown(seq) - g.shown(through)})
	}
	for _, p := range g {
		for len(checkpoints) > 0 && g.seqAt(&checkpoints[0]) <= float64(p.Seq) {
			c := &checkpoints[0]
			at := g.seqAt(c)
			add(at)
			through, tokens = float64(c.Through), float64(c.Tokens)
			add(at)
			checkpoints = checkpoints[1:]
		}
		add(float64(p.Seq))
	}
	return points
}

func highest(points []xy) (top float64) {
	for _, p := range points {
		top = max(top, p.Y)
	}
	return top
}

// plot is a plot of tokens over seqs, as its template draws it: places are units of its picture.
type plot struct {
	Lines  []plotLine
	Levels []plotLevel
	Marks  []plotMark
	Down   []tick // of the horizontal axis
	Across []tick // of the vertical one
	width  float64
	height float64
}

// drawing is a plot with what it says to those who do not see it.
type drawing struct {
	Plot plot
	Says string
}

type plotLine struct{ Class, Path string }

type plotLevel struct {
	Class    string
	Y, Label float64 // and where its name is
	Tokens   int64
}

type plotMark struct {
	X    float64
	N    int
	Link string
}

type tick struct {
	At    float64
	Value int64
}

// The sizes of the picture inside the axes, which the template has, too.
const (
	plotWidth  = 900.0
	plotHeight = 260.0

	labelHeight = 13
)

// newPlot returns a plot whose axes reach these values.
func newPlot(seqs, tokens float64) plot {
	p := plot{width: max(seqs, 1), height: max(tokens, 1) * 1.04}
	for _, v := range steps(p.width) {
		p.Down = append(p.Down, tick{p.x(v), int64(v)})
	}
	for _, v := range steps(p.height) {
		p.Across = append(p.Across, tick{p.y(v), int64(v)})
	}
	return p
}

// steps returns round values up to a largest one, at most about six.
func steps(largest float64) (values []float64) {
	step := math.Pow(10, math.Floor(math.Log10(largest)))
	for _, part := range []float64{0.1, 0.2, 0.5, 1} {
		if largest/(step*part) <= 6 {
			step *= part
			break
		}
	}
	step = max(step, 1)
	for v := 0.0; v <= largest; v += step {
		values = append(values, v)
	}
	return values
}

func (p *plot) x(seq float64) float64    { return plotWidth * seq / p.width }
func (p *plot) y(tokens float64) float64 { return plotHeight * (1 - tokens/p.height) }

func (p *plot) line(class string, points []xy) {
	var path strings.Builder
	for i, at := range points {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", command, p.x(at.X), p.y(at.Y))
	}
	p.Lines = append(p.Lines, plotLine{class, path.String()})
}

// level adds a number of tokens that is the same everywhere, unless it is 0.
func (p *plot) level(class string, tokens int64) {
	if tokens == 0 {
		return
	}
	y := p.y(float64(tokens))
	p.Levels = append(p.Levels, plotLevel{class, y, y, tokens})
	slices.SortFunc(p.Levels, func(a, b plotLevel) int { return cmp.Compare(a.Tokens, b.Tokens) })
	for i := range p.Levels[1:] { // names that would lie upon each other are moved up
		p.Levels[i+1].Label = min(p.Levels[i+1].Y, p.Levels[i].Label-labelHeight)
	}
}

func (p *plot) mark(seq float64, n int, link string) {
	p.Marks = append(p.Marks, plotMark{p.x(seq), n, link})
}
