package replay

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// WriteSVG writes a plot of the far calls against the tokens of the views, and against the cost with read-backs. It is
// readable on light and on dark ground.
func (r *Report) WriteSVG(w io.Writer) error {
	tokens := axis{
		name:  "mean view, thousands of tokens",
		value: func(p CurvePoint) float64 { return p.MeanView / 1000 },
	}
	cost := axis{
		name:  "cost with read-backs, millions of input tokens (" + Cards()[0].Name + ")",
		value: func(p CurvePoint) float64 { return p.FullCost / 1e6 },
	}
	var out strings.Builder
	fmt.Fprintf(&out, svgHead, 2*panelWidth+legendWidth, panelHeight)
	shown := r.plotted()
	for i, a := range []axis{tokens, cost} {
		a.fit(shown)
		fmt.Fprintf(&out, "<g transform=\"translate(%d 0)\">\n", i*panelWidth)
		a.draw(&out)
		for k := range shown {
			a.line(&out, &shown[k], k)
		}
		out.WriteString("</g>\n")
	}
	for k := range shown {
		fmt.Fprintf(&out, "<text class=\"t\" x=\"%d\" y=\"%d\" style=\"fill:%s\">%s</text>\n", 2*panelWidth+10, 40+18*k,
			colour(k), html.EscapeString(shown[k].Contender))
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// The sizes of the plot.
const (
	panelWidth  = 460
	panelHeight = 360
	legendWidth = 160
	marginLeft  = 50
	marginTop   = 20
	plotWidth   = 390
	plotHeight  = 290
)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif">
<style>
.t { font-size: 12px; fill: #333 }
.g { stroke: #8884; stroke-width: 1 }
.l { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) { .t { fill: #ccc } }
</style>
`

// maxPlotted is the largest mean view that is plotted: beyond it the contenders hardly differ.
const maxPlotted = 100_000

// plotted returns the curves without the points that are too large, and without the curves that have none left.
func (r *Report) plotted() (shown []Curve) {
	for _, c := range r.Curves {
		left := Curve{Contender: c.Contender}
		for _, p := range c.Points {
			if p.MeanView <= maxPlotted {
				left.Points = append(left.Points, p)
			}
		}
		if left.Points != nil {
			shown = append(shown, left)
		}
	}
	return shown
}

// maxSteps is how many lines the grid of a horizontal axis has at most.
const maxSteps = 10

// axis is a horizontal axis; the vertical one is always the share of far calls.
type axis struct {
	name   string
	value  func(CurvePoint) float64
	step   float64 // between two lines of the grid
	high   float64
	bottom float64 // of the vertical axis
}

// fit makes the axes span the curves.
func (a *axis) fit(curves []Curve) {
	a.bottom = 100
	for _, c := range curves {
		for _, p := range c.Points {
			a.high = max(a.high, a.value(p))
			for p.Far < a.bottom {
				a.bottom -= 10
			}
		}
	}
	for _, a.step = range []float64{1, 2, 5, 10, 20} {
		if a.high <= maxSteps*a.step {
			break
		}
	}
	a.high = a.step * max(1, math.Ceil(a.high/a.step))
	a.bottom = max(0, min(a.bottom, 90))
}

func (a *axis) x(v float64) float64 { return marginLeft + plotWidth*v/a.high }

func (a *axis) y(far float64) float64 {
	return marginTop + plotHeight*(100-far)/(100-a.bottom)
}

// draw draws the grid and its labels.
func (a *axis) draw(out *strings.Builder) {
	for far := a.bottom; far <= 100; far += 10 {
		y := a.y(far)
		fmt.Fprintf(out, "<path class=\"g\" d=\"M%d %.1fh%d\"/>\n", marginLeft, y, plotWidth)
		label(out, "end", marginLeft-6, y+4, fmt.Sprintf("%.0f", far))
	}
	for v := 0.0; v <= a.high; v += a.step {
		fmt.Fprintf(out, "<path class=\"g\" d=\"M%.1f %dv%d\"/>\n", a.x(v), marginTop, plotHeight)
		label(out, "middle", a.x(v), marginTop+plotHeight+16, fmt.Sprintf("%.0f", v))
	}
	label(out, "middle", marginLeft+plotWidth/2, panelHeight-14, a.name)
	label(out, "start", marginLeft, marginTop-6, "far calls whole, %")
}

func label(out *strings.Builder, anchor string, x, y float64, text string) {
	fmt.Fprintf(out, "<text class=\"t\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", anchor, x, y, text)
}

// line draws a curve with a dot for each window.
func (a *axis) line(out *strings.Builder, c *Curve, k int) {
	var path strings.Builder
	for i, p := range c.Points {
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		x, y := a.x(a.value(p)), a.y(p.Far)
		fmt.Fprintf(&path, "%c%.1f %.1f", command, x, y)
		fmt.Fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", x, y, colour(k))
	}
	dashes := ""
	if slices.Contains(yardsticks, c.Contender) {
		dashes = ` stroke-dasharray="5 3"`
	}
	fmt.Fprintf(out, "<path class=\"l\" stroke=\"%s\"%s d=\"%s\"/>\n", colour(k), dashes, path.String())
}

// colour returns the colour of a curve, of medium lightness: it stands out on white and on black.
func colour(k int) string { return fmt.Sprintf("hsl(%d 70%% %d%%)", k*137%360, 45+10*(k%2)) }
