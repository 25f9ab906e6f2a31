package rule

// Cache has a provider's prices of cached input tokens, as multiples of the price of an uncached one.
type Cache struct {
	Read  float64 // of a token that is read from the cache
	Write float64 // of a token that is written to it
}

// Worth compares the gain of a compaction over the next horizon requests with its cost, the cached prefix that it
// breaks. The compacted view is a kept prefix, which is read as before, and rewritten tokens after it; without the
// compaction there are saved tokens more. Uncached tokens after the prefix may be counted as rewritten, which
// overstates the cost.
//
// While the cache is warm, waiting reads rewritten+saved tokens in each request. Compacting writes the rewritten ones
// in the first request and reads them in the others. The difference is
//
//	gain = horizon × Read × saved
//	cost = (Write − Read) × rewritten
//
// When it is cold, the next request writes the whole view in any case: without the compaction, the saved tokens would
// be written once and then read, and the compaction costs nothing.
//
//	gain = (Write + (horizon−1) × Read) × saved
//	cost = 0
//
// If the cache goes cold within the horizon, waiting writes the saved tokens again, which costs no less than reading
// them: the gain is at least this much. So a compaction that is worth it never costs more than waiting, if horizon
// requests come.
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
