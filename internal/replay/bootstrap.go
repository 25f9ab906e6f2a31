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

// against returns how much more of what is measured a contender has at a mean size than the baseline, with the interval
// in which 95 % of the samples lie.
func (t *table) against(of func(*Outcome) Ratio, contender, baseline string, mean float64, samples [][]int) *Interval {
	own, base := t.points(of, contender), t.points(of, baseline)
	difference := func(sample []int) float64 {
		return own.at(mean, sample) - base.at(mean, sample)
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

// bySession is a measure of a contender by window and session.
type bySession [][]sessionPoint

// sessionPoint is what is measured in one session, with its late requests and their tokens.
type sessionPoint struct {
	of       Ratio
	tokens   int64
	requests int64
}

func (t *table) points(of func(*Outcome) Ratio, contender string) (m bySession) {
	for _, window := range t.windows {
		list := t.complete(contender, window)
		if list == nil {
			continue
		}
		points := make([]sessionPoint, len(list))
		for i, o := range list {
			points[i] = sessionPoint{of(o), o.Late.Tokens, int64(o.Late.Requests)}
		}
		m = append(m, points)
	}
	return m
}

// sharePoint is a share at a mean size.
type sharePoint struct{ mean, share float64 }

// at returns the share at a mean size over the drawn sessions.
func (m bySession) at(mean float64, sample []int) float64 {
	points := make([]sharePoint, 0, len(m))
	for _, sessions := range m {
		var sum Ratio
		var tokens, requests int64
		for _, i := range sample {
			sum.add(sessions[i].of)
			tokens += sessions[i].tokens
			requests += sessions[i].requests
		}
		points = append(points, sharePoint{float64(tokens) / float64(max(1, requests)), sum.Share()})
	}
	slices.SortStableFunc(points, func(a, b sharePoint) int { return cmp.Compare(a.mean, b.mean) })
	return interpolate(points, mean)
}

// interpolate returns the share at a mean size: between two points in proportion, outside of them that of the nearest.
func interpolate(points []sharePoint, mean float64) float64 {
	after := 0
	for after < len(points) && points[after].mean < mean {
		after++
	}
	switch after {
	case 0:
		return points[0].share
	case len(points):
		return points[after-1].share
	}
	a, b := points[after-1], points[after]
	return a.share + (mean-a.mean)/(b.mean-a.mean)*(b.share-a.share)
}
