package rule

// Cache is what a provider takes for an input token, as multiples of one that no cache holds.
type Cache struct {
	Read  float64 // of a token that is read from the cache
	Write float64 // of a token that is written to it
}

// Worth weighs a compaction against the cached prefix that it breaks, over the next horizon requests. The view is then
// a kept prefix, which is read as before, and rewritten tokens behind it; without the compaction there are saved tokens
// more. Tokens behind the prefix that no cache holds yet may be counted among the rewritten: that overstates the cost.
//
// While the cache is warm, waiting reads rewritten+saved tokens in each request. Compacting writes the rewritten ones in
// the first and reads them in the others. The difference is
//
//	gain = horizon × Read × saved
//	cost = (Write − Read) × rewritten
//
// When it is cold, the next request writes the whole view in any case: the saved tokens are written once and read in
// the others, and nothing is lost.
//
//	gain = (Write + (horizon−1) × Read) × saved
//	cost = 0
//
// If the cache goes cold within the horizon, waiting writes the saved tokens once more, which is no less than reading
// them: the gain is at least this much. So a compaction that is worth it never costs more than waiting, if as many as
// horizon requests do come.
func Worth(saved, rewritten int64, warm bool, horizon int, prices Cache) (worth bool, gain, cost float64) {
	if saved <= 0 || horizon <= 0 {
		return false, 0, 0
	}
	requests := float64(horizon)
	if warm {
		gain = requests * prices.Read * float64(saved)
		cost = max(0, prices.Write-prices.Read) * float64(rewritten)
	} else {
		gain = (prices.Write + (requests-1)*prices.Read) * float64(saved)
	}
	return gain >= cost, gain, cost
}
