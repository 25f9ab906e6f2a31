package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// draws returns the samples of the bootstrap: for each, the numbers of the sessions that were drawn. They are the same
// for all contenders, so that differences are paired.
func draws(sessions int, o Options) [][]int {
	random := rand.New(rand.NewPCG(o.Seed, 0))
	samples := make([][]int, o.Resamples)
	for i := range samples {
		samples[i] = make([]int, sessions)
		for k := range samples[i] {
			samples[i][k] = random.IntN(sessions)
		}
	}
	return samples
}

// against returns how many far calls more a contender has at a mean size than the baseline, with the interval in which
// 95 % of the samples lie.
func (t *table) against(contender, baseline string, mean float64, samples [][]int) *Interval {
	difference := func(sample []int) float64 {
		return t.farAt(contender, mean, sample) - t.farAt(baseline, mean, sample)
	}
	drawn := make([]float64, len(samples))
	for i, sample := range samples {
		drawn[i] = difference(sample)
	}
	slices.Sort(drawn)
	at := func(share float64) float64 { return drawn[int(share*float64(len(drawn)-1)+0.5)] }
	all := make([]int, len(t.sessions))
	for i := range all {
		all[i] = i
	}
	return &Interval{Difference: difference(all), Low: at(0.025), High: at(0.975)}
}

// farPoint is the share of far calls at a mean size.
type farPoint struct{ mean, far float64 }

// farAt returns a contender's share of far calls at a mean size over the drawn sessions.
func (t *table) farAt(contender string, mean float64, sample []int) float64 {
	var points []farPoint
	for _, window := range t.windows {
		list := t.complete(contender, window)
		if list == nil {
			continue
		}
		var far Ratio
		var tokens, requests int64
		for _, i := range sample {
			late := &list[i].Late
			far.add(late.Far)
			tokens += late.Tokens
			requests += int64(late.Requests)
		}
		points = append(points, farPoint{float64(tokens) / float64(max(1, requests)), far.Share()})
	}
	slices.SortStableFunc(points, func(a, b farPoint) int { return cmp.Compare(a.mean, b.mean) })
	return interpolate(points, mean)
}

// interpolate returns the share at a mean size: between two points in proportion, outside of them that of the nearest.
func interpolate(points []farPoint, mean float64) float64 {
	after := 0
	for after < len(points) && points[after].mean < mean {
		after++
	}
	switch after {
	case 0:
		return points[0].far
	case len(points):
		return points[after-1].far
	}
	a, b := points[after-1], points[after]
	return a.far + (mean-a.mean)/(b.mean-a.mean)*(b.far-a.far)
}
