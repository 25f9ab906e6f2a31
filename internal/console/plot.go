package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/terminal"
)

// xy is a point of a line.
type xy struct{ X, Y float64 }

func highest(points []xy) (top float64) {
	for _, p := range points {
		top = max(top, p.Y)
	}
	return top
}

// plot is a plot of tokens, as its template draws it: places are units of its picture.
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
	Label string
}

// The sizes of the picture inside the axes, which the template has, too.
const (
	plotWidth  = 900.0
	plotHeight = 260.0

	labelHeight = 13
)

// newPlot returns a plot whose axes reach these values.
func newPlot(across, tokens float64, unit string) plot {
	p := plot{width: cmp.Or(across, 1), height: max(tokens, 1) * 1.04}
	for _, v := range steps(p.width) {
		p.Down = append(p.Down, tick{p.x(v), strings.TrimSpace(figure(v) + " " + unit)})
	}
	for _, v := range steps(p.height) {
		p.Across = append(p.Across, tick{p.y(v), figure(v)})
	}
	return p
}

// figure writes a round number.
func figure(v float64) string {
	if v == math.Trunc(v) {
		return terminal.Thousands(int64(v))
	}
	return fmt.Sprintf("%.3g", v)
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
	for i := 0; float64(i)*step <= largest; i++ {
		values = append(values, float64(i)*step)
	}
	return values
}

// unitOf returns the unit in which a time is a number that people read.
func unitOf(d time.Duration) (unit time.Duration, name string) {
	const several = 3
	switch {
	case d > several*24*time.Hour:
		return 24 * time.Hour, "d"
	case d > several*time.Hour:
		return time.Hour, "h"
	case d > several*time.Minute:
		return time.Minute, "min"
	}
	return time.Second, "s"
}

func (p *plot) x(v float64) float64      { return plotWidth * v / p.width }
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

func (p *plot) mark(at float64, n int, link string) {
	p.Marks = append(p.Marks, plotMark{p.x(at), n, link})
}
