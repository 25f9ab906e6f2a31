package rule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/rule"
)

func TestAResultShrinksWithItsDistance(t *testing.T) {
	t.Parallel()
	type aged struct {
		Step  rule.Step
		Chars int
	}
	usual := rule.Aging{Zone: 100, Span: 400, MaxChars: 40, MinChars: 10}
	for name, c := range map[string]struct {
		aging    rule.Aging
		distance float64
		want     aged
	}{
		"the newest is whole":                       {usual, 0, aged{rule.Whole, 0}},
		"so is all of the zone":                     {usual, 99, aged{rule.Whole, 0}},
		"the zone's border is outside":              {usual, 100, aged{rule.Bookend, 40}},
		"halfway along the span":                    {usual, 300, aged{rule.Bookend, 25}},
		"halves round up":                           {rule.Aging{Span: 8, MaxChars: 14, MinChars: 10}, 3, aged{rule.Bookend, 13}},
		"just before the span's end":                {usual, 499, aged{rule.Bookend, 10}},
		"the span's end is outside":                 {usual, 500, aged{rule.Line, 0}},
		"far away":                                  {usual, 1e9, aged{rule.Line, 0}},
		"without a span there are no bookends":      {rule.Aging{Zone: 100, MaxChars: 40, MinChars: 10}, 100, aged{rule.Line, 0}},
		"without a zone nothing is whole":           {rule.Aging{Span: 400, MaxChars: 40, MinChars: 10}, 0, aged{rule.Bookend, 40}},
		"the minChars wins over a smaller maxChars": {rule.Aging{Span: 400, MaxChars: 10, MinChars: 50}, 0, aged{rule.Bookend, 50}},
		"a distance between whole ones":             {rule.Aging{Zone: 51.2, Span: 409.6, MaxChars: 2000, MinChars: 256}, 51.3, aged{rule.Bookend, 2000}},
		"a share that is one after rounding ends":   {rule.Aging{Zone: 0, Span: 1e-320, MaxChars: 40, MinChars: 10}, 1, aged{rule.Line, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, chars := c.aging.At(c.distance)
			if diff := cmp.Diff(c.want, aged{step, chars}); diff != "" {
				t.Errorf("At(%v) (-want +got):\n%s", c.distance, diff)
			}
		})
	}
}

// FuzzAging checks that an older result never keeps more characters, and never fewer than the minimum.
func FuzzAging(f *testing.F) {
	f.Add(100.0, 400.0, 2000, 256, uint32(150), uint32(151))
	f.Fuzz(func(t *testing.T, zone, span float64, maxChars, minChars int, near, far uint32) {
		if near > far || maxChars < minChars || minChars < 0 || maxChars > 1e6 || span > 1e7 {
			return
		}
		aging := rule.Aging{Zone: zone, Span: span, MaxChars: maxChars, MinChars: minChars}
		nearStep, nearChars := aging.At(float64(near))
		farStep, farChars := aging.At(float64(far))
		if farStep < nearStep || farStep == nearStep && farChars > nearChars {
			t.Errorf("%+v keeps %v %d at %v, but %v %d at %v", aging, nearStep, nearChars, near, farStep, farChars, far)
		}
		if farStep == rule.Bookend && (farChars < minChars || farChars > maxChars) {
			t.Errorf("%+v keeps %d characters at %v", aging, farChars, far)
		}
	})
}
