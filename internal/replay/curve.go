package replay

import (
	"cmp"
	"slices"
)

// point is what came of several outcomes of one contender in one window.
type point struct {
	mean   float64 // tokens of the late views
	values Values
}

// curve is what came of one contender over the windows, by mean size of the view.
type curve []point

// sumUp sums outcomes up, with the calls and the mean size of late requests.
func sumUp(list []*Outcome, late func(*Outcome) *Sums) point {
	var calls, all Sums
	calls.makeMaps()
	all.makeMaps()
	var v Values
	var each, end, demands, prefix Ratio
	for _, o := range list {
		calls.add(late(o))
		all.add(&o.All)
		each.add(o.UserEach)
		end.add(o.UserEnd)
		demands.add(o.DemandsEnd)
		prefix.add(o.Prefix)
		v.Compactions += float64(o.Compactions)
		v.Peak = max(v.Peak, float64(o.Peak))
	}
	v.Content, v.ContentAll = map[string]float64{}, map[string]float64{}
	for c := range contents {
		var sum Ratio
		for _, o := range list {
			sum.add(o.content(c, late))
		}
		if sum.All > 0 {
			v.Content[c.String()], v.ContentAll[c.String()] = sum.Share(), sum.All
		}
	}
	v.Far, v.FarCalls = calls.Far.Share(), calls.Far.All
	v.Calls, v.LateCalls = calls.Calls.Share(), calls.Calls.All
	v.FarEdits, v.EditCalls = calls.FarEdits.Share(), calls.FarEdits.All
	v.FarBy, v.CallsBy = shares(calls.FarBy), shares(calls.CallsBy)
	v.ReadBacks, v.Over = float64(all.ReadBacks), float64(all.Over)
	v.UserEach, v.UserEnd = each.Share(), end.Share()
	v.Demands, v.Prefix = demands.Share(), prefix.Share()
	v.Cost, v.FullCost = all.Cost, map[string]float64{}
	for card, cost := range all.Cost {
		v.FullCost[card] = cost + all.BackCost[card]
	}
	return point{mean: float64(calls.Tokens) / float64(max(1, calls.Requests)), values: v}
}

func shares(by map[string]Ratio) map[string]float64 {
	m := map[string]float64{}
	for kind, r := range by {
		if r.All > 0 {
			m[kind] = r.Share()
		}
	}
	return m
}

func (s *Sums) makeMaps() {
	s.Cost, s.BackCost = map[string]float64{}, map[string]float64{}
	s.CallsBy, s.FarBy = map[string]Ratio{}, map[string]Ratio{}
}

func (s *Sums) add(o *Sums) {
	s.Requests += o.Requests
	s.Tokens += o.Tokens
	s.Over += o.Over
	s.ReadBacks += o.ReadBacks
	s.Summaries += o.Summaries
	s.Calls.add(o.Calls)
	s.Far.add(o.Far)
	s.FarEdits.add(o.FarEdits)
	for c := range o.Content {
		s.Content[c].add(o.Content[c])
	}
	for card := range o.Cost {
		s.Cost[card] += o.Cost[card]
		s.BackCost[card] += o.BackCost[card]
	}
	for _, k := range kindNames {
		s.CallsBy[k] = sumOf(s.CallsBy[k], o.CallsBy[k])
		s.FarBy[k] = sumOf(s.FarBy[k], o.FarBy[k])
	}
}

func sumOf(a, b Ratio) Ratio {
	a.add(b)
	return a
}

// curve returns a contender's curve over the long sessions. A window in which it has not run in all of them is left
// out.
func (t *table) curve(contender string) (c curve) {
	for _, window := range t.windows {
		if list := t.complete(contender, window); list != nil {
			c = append(c, sumUp(list, func(o *Outcome) *Sums { return &o.Late }))
		}
	}
	slices.SortStableFunc(c, func(a, b point) int { return cmp.Compare(a.mean, b.mean) })
	return c
}

// complete returns the outcomes of the long sessions, in their order; nil if some are missing.
func (t *table) complete(contender string, window int) []*Outcome {
	found := t.long[cell{contender, window}]
	if len(found) == 0 || len(found) < len(t.sessions) {
		return nil
	}
	list := make([]*Outcome, len(t.sessions))
	for i, name := range t.sessions {
		list[i] = found[name]
	}
	return list
}

// reaches reports whether the curve spans a mean size.
func (c curve) reaches(mean float64) bool {
	return len(c) > 0 && c[0].mean <= mean && mean <= c[len(c)-1].mean
}

// at returns the values at a mean size: between two windows in proportion, outside of them those of the nearest.
func (c curve) at(mean float64) Values {
	after := 0
	for after < len(c) && c[after].mean < mean {
		after++
	}
	switch after {
	case 0:
		return c[0].values
	case len(c):
		return c[len(c)-1].values
	}
	a, b := &c[after-1], &c[after]
	return between(&a.values, &b.values, (mean-a.mean)/(b.mean-a.mean))
}

// between returns the values at a share of the way from a to b.
func between(a, b *Values, share float64) Values {
	mix := func(a, b float64) float64 { return a + share*(b-a) }
	mixed := func(a, b map[string]float64) map[string]float64 {
		m := map[string]float64{}
		for k := range a {
			m[k] = mix(a[k], b[k])
		}
		return m
	}
	return Values{
		Far: mix(a.Far, b.Far), Calls: mix(a.Calls, b.Calls), FarEdits: mix(a.FarEdits, b.FarEdits),
		FarBy: mixed(a.FarBy, b.FarBy), CallsBy: mixed(a.CallsBy, b.CallsBy),
		Content: mixed(a.Content, b.Content), ContentAll: a.ContentAll,
		ReadBacks: mix(a.ReadBacks, b.ReadBacks),
		Cost:      mixed(a.Cost, b.Cost), FullCost: mixed(a.FullCost, b.FullCost),
		UserEnd: mix(a.UserEnd, b.UserEnd), UserEach: mix(a.UserEach, b.UserEach),
		Demands:     mix(a.Demands, b.Demands),
		Compactions: mix(a.Compactions, b.Compactions), Prefix: mix(a.Prefix, b.Prefix), Over: mix(a.Over, b.Over),
		Peak: mix(a.Peak, b.Peak), FarCalls: a.FarCalls, LateCalls: a.LateCalls, EditCalls: a.EditCalls,
	}
}

// content returns a content measure of an outcome: of these requests, or of all compactions.
func (o *Outcome) content(c Content, of func(*Outcome) *Sums) Ratio {
	r := of(o).Content[c]
	r.add(o.Content[c])
	return r
}
