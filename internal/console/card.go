package console

import "encoding/json"

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
